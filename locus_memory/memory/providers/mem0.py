"""The memory provider over the mem0 platform, by its HTTP API, version 3.

Its own package, `mem0ai`, is not used: it sends telemetry, checks the key in a blocking request,
and installs the clients of a vector database, of an SQL database and of a model, which the API
does not need.

Protocol: https://docs.mem0.ai/api-reference
"""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel
from typing_extensions import override

from locus_memory.memory.models import MemorySearchResult
from locus_memory.memory.providers.service import ServiceProvider, path_part

__all__ = ["Mem0Provider"]


class _Fact(BaseModel):
    id: str = ""
    memory: str = ""
    user_id: str | None = None
    score: float | None = None
    metadata: dict[str, Any] | None = None
    created_at: str | None = None


class _Found(BaseModel):
    results: list[_Fact]


class _Added(BaseModel):
    event_id: str = ""


class Mem0Provider(ServiceProvider):
    """Memories on the mem0 platform, which extracts facts from turns by itself.

    The user of a run is the `user_id` of every request. A run without a user is refused, unless
    `user_id` names one.

    Args:
        api_key: By default `MEM0_API_KEY`. The platform needs one.
        api_url: The address of the platform; by default `MEM0_API_URL`, else that of mem0.
        user_id: The user of runs without a user.
        timeout: The seconds that one attempt of a request may take.
        attempts: How often a request is tried if the platform is overloaded or unreachable.

    Raises:
        ConfigurationError: No key, or an option that cannot work.
        MissingDriverError: The package `httpx` is not installed.
    """

    _name = "mem0"
    _cloud = "https://api.mem0.ai"
    _scheme = "Token"

    @override
    async def on_turn_complete(self, user: str, assistant: str, *, session_id: str = "") -> None:
        """Send the turn; the platform extracts its facts later."""
        turn = [{"role": "user", "content": user}, {"role": "assistant", "content": assistant}]
        facts = {"source": "turn"} | ({"session_id": session_id} if session_id else {})
        await self._add(turn, metadata=facts)

    @override
    async def _found(self, query: str, limit: int) -> list[MemorySearchResult]:
        user = self._user_id
        body = {"query": query, "filters": {"user_id": user}, "top_k": limit}
        answer = await self._request("POST", "/v3/memories/search/", _Found, body)
        return [_result(each) for each in answer.results if each.user_id in (user, None)]

    @override
    async def remember(self, content: str) -> str:
        """Store a fact as it is; return the id of the pending write."""
        told = [{"role": "user", "content": content}]
        return await self._add(told, infer=False, metadata={"source": "manual"})

    @override
    async def forget(self, memory_id: str) -> bool:
        """Delete a fact of the user; return whether it was there.

        A fact of another user counts as one that is not there.
        """
        path = f"/v1/memories/{path_part(memory_id, 'a memory id')}/"
        found = await self._request("GET", path, _Fact)
        if found.user_id != self._user_id:
            return False
        await self._request("DELETE", path, _Fact)
        return True

    async def _add(self, messages: list[dict[str, str]], **options: Any) -> str:
        body = {"messages": messages, "user_id": self._user_id, **options}
        return (await self._request("POST", "/v3/memories/add/", _Added, body)).event_id


def _result(found: _Fact) -> MemorySearchResult:
    source = (found.metadata or {}).get("source")
    return MemorySearchResult(
        id=found.id,
        content=found.memory,
        score=found.score,
        source=source if isinstance(source, str) else "mem0",
        created_at=found.created_at,
    )
