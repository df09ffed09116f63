"""The memory provider over the mem0 platform, by its HTTP API, version 3.

Its own package, `mem0ai`, is not used: it sends telemetry, checks the key in a blocking request,
and installs the clients of a vector database, of an SQL database and of a model, which the API
does not need.

Protocol: https://docs.mem0.ai/api-reference
"""

from __future__ import annotations

import copy
from typing import Any, Final, Self
from urllib.parse import quote as quoted

from typing_extensions import override

from locus_memory._internal.providers.drivers import require
from locus_memory.errors import ConfigurationError
from locus_memory.memory.models import MemorySearchResult
from locus_memory.memory.providers.base import BaseMemoryProvider
from locus_memory.memory.providers.service import Service, lines, service_key, service_url
from locus_memory.store.item import check_identifier, check_limit

__all__ = ["Mem0Provider"]

_URL: Final = "https://api.mem0.ai"
_KEY: Final = "MEM0_API_KEY"
_NOT_FOUND: Final = 404
_FAILURE: Final = 400
_RECALLED: Final = 5


class Mem0Provider(BaseMemoryProvider):
    """Memories on the mem0 platform, which extracts facts from turns by itself.

    The user of a run is the `user_id` of every request. A run without a user is refused, unless
    `user_id` names one.

    Args:
        api_key: By default `MEM0_API_KEY`.
        api_url: The address of the platform; by default `MEM0_API_URL`, else that of mem0.
        user_id: The user of runs without a user.
        timeout: The seconds that one attempt of a request may take.
        attempts: How often a request is tried if the platform is overloaded or unreachable.

    Raises:
        ConfigurationError: No key, or an option that cannot work.
        MissingDriverError: The package `httpx` is not installed.
    """

    def __init__(
        self,
        *,
        api_key: str | None = None,
        api_url: str | None = None,
        user_id: str | None = None,
        timeout: float = 10.0,
        attempts: int = 3,
    ) -> None:
        self._httpx: Any = require("httpx", "mem0")
        self._service = Service("mem0", _KEY, timeout=timeout, attempts=attempts)
        key = service_key("mem0", api_key, _KEY, needed=True)
        headers = {"Authorization": f"Token {key}", "Accept": "application/json"}
        url = service_url("mem0", api_url, "MEM0_API_URL", _URL)
        self._client: Any = self._httpx.AsyncClient(base_url=url, headers=headers, timeout=timeout)
        self._user = user_id

    @override
    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    def for_user(self, user_id: str) -> Self:
        """Return this provider for a user; it shares the connections."""
        view = copy.copy(self)
        view._user = check_identifier(user_id, "a user id")  # noqa: SLF001 - it is one of us
        return view

    @override
    async def prefetch(self, query: str, *, session_id: str = "") -> str:
        """Return the five best facts, one a line."""
        return lines([each.content for each in await self.search(query, _RECALLED)])

    @override
    async def on_turn_complete(self, user: str, assistant: str, *, session_id: str = "") -> None:
        """Send the turn; the platform extracts its facts later."""
        turn = [{"role": "user", "content": user}, {"role": "assistant", "content": assistant}]
        facts = {"source": "turn"} | ({"session_id": session_id} if session_id else {})
        await self._add(turn, metadata=facts)

    @override
    async def search(self, query: str, limit: int = 5) -> list[MemorySearchResult]:
        """Return the facts that match, the best first.

        Raises:
            ConfigurationError: There is no user, or the key was refused.
            BackendError: The platform failed.
        """
        user = self._user_id
        if not query.strip() or not check_limit(limit):
            return []
        body = {"query": query.strip(), "filters": {"user_id": user}, "top_k": limit}
        answer = await self._request("POST", "/v3/memories/search/", body)
        found = [_result(each) for each in self._listed(answer) if _is_of(each, user)]
        return found[:limit]

    @override
    async def remember(self, content: str) -> str:
        """Store a fact as it is; return its id, or that of the pending write."""
        told = [{"role": "user", "content": content}]
        answer = await self._add(told, infer=False, metadata={"source": "manual"})
        listed = answer.get("results") if isinstance(answer, dict) else answer
        first = listed[0] if isinstance(listed, list) and listed else answer
        known = first if isinstance(first, dict) else {}
        return str(known.get("id") or known.get("memory_id") or known.get("event_id") or "")

    @override
    async def forget(self, memory_id: str) -> bool:
        """Delete a fact of the user; return whether it was there.

        A fact of another user counts as one that is not there.
        """
        path = f"/v1/memories/{quoted(check_identifier(memory_id, 'a memory id'), safe='')}/"
        found = await self._request("GET", path)
        if not isinstance(found, dict) or found.get("user_id") != self._user_id:
            return False
        await self._request("DELETE", path)
        return True

    @override
    async def shutdown(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    @property
    def _user_id(self) -> str:
        if self._user is None:
            raise ConfigurationError(
                "mem0: every request has a user, and this run names none: pass user_id="
            )
        return self._user

    async def _add(self, messages: list[dict[str, str]], **options: Any) -> Any:
        body = {"messages": messages, "user_id": self._user_id, **options}
        return await self._request("POST", "/v3/memories/add/", body)

    async def _request(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        """Return the JSON of an answer, or `None` if there is no such thing."""

        async def send() -> Any:
            try:
                answer = await self._client.request(method, path, json=body)
            except (self._httpx.HTTPError, self._httpx.InvalidURL, OSError) as error:
                # The cause holds the request, and with it the key.
                raise self._service.unreachable(error) from None
            if answer.status_code == _NOT_FOUND and body is None:
                return None
            if answer.status_code >= _FAILURE:
                raise self._service.refusal(answer.status_code)
            try:
                return answer.json() if answer.content else {}
            except ValueError:
                raise self._service.invalid() from None

        return await self._service.call(send)

    def _listed(self, answer: Any) -> list[Any]:
        """Return the facts of an answer, in any of the forms of the API."""
        if isinstance(answer, dict):
            answer = answer.get("results", answer.get("memories"))
        if not isinstance(answer, list):
            raise self._service.invalid()
        return answer


def _is_of(found: Any, user: str) -> bool:
    """Return whether a fact can be read, and is not of another user."""
    return (
        isinstance(found, dict)
        and isinstance(found.get("memory"), str)
        and found.get("user_id", user) in (user, None)
    )


def _result(found: dict[str, Any]) -> MemorySearchResult:
    score, facts = found.get("score"), found.get("metadata")
    source = facts.get("source") if isinstance(facts, dict) else None
    created = found.get("created_at")
    return MemorySearchResult(
        id=str(found.get("id") or ""),
        content=found["memory"],
        score=float(score) if isinstance(score, int | float) else None,
        source=source if isinstance(source, str) else "mem0",
        created_at=created if isinstance(created, str) else None,
    )
