"""The memory provider over a Hindsight server, by its own client `hindsight-client`.

Documentation: https://hindsight.vectorize.io
"""

from __future__ import annotations

import copy
import os
from collections.abc import Callable
from importlib import import_module
from typing import Any, Final, Literal, Self
from urllib.parse import urlsplit
from uuid import uuid4

from typing_extensions import override

from locus_memory._internal.providers.drivers import require
from locus_memory.memory.models import MemorySearchResult
from locus_memory.memory.options import check_whole
from locus_memory.memory.providers.base import BaseMemoryProvider
from locus_memory.memory.providers.service import (
    Service,
    choice,
    lines,
    service_key,
    service_url,
)
from locus_memory.store.item import check_identifier, check_limit

__all__ = ["HindsightProvider"]

_CLOUD: Final = "https://api.hindsight.vectorize.io"
_KEY: Final = "HINDSIGHT_API_KEY"
_BUDGETS: Final = ("low", "mid", "high")
_RECALLED: Final = 5

Budget = Literal["low", "mid", "high"]


class HindsightProvider(BaseMemoryProvider):
    """A bank of a Hindsight server, which extracts facts from turns by itself.

    The user of a run is a tag, `user:<id>`, of everything that is stored and asked. A user sees
    only what has their tag, and a run without a user only what has no tag.

    Args:
        bank_id: The bank; by default `HINDSIGHT_BANK_ID`, else `operator`.
        api_url: The server; by default `HINDSIGHT_API_URL`, else the cloud.
        api_key: By default `HINDSIGHT_API_KEY`. The cloud needs one.
        budget: How thoroughly to search, `low`, `mid` or `high`; by default
            `HINDSIGHT_RECALL_BUDGET`, else `mid`.
        prefetch_method: `recall` puts facts before the model, `reflect` the server's answer.
        recall_max_tokens: The most tokens of recalled facts; `None`: the default of the client.
        timeout: The seconds that one attempt of a request may take.
        attempts: How often a request is tried if the server is overloaded or unreachable.

    Raises:
        ConfigurationError: No key for the cloud, or an option that cannot work.
        MissingDriverError: The package `hindsight-client` is not installed.
    """

    def __init__(
        self,
        bank_id: str | None = None,
        *,
        api_url: str | None = None,
        api_key: str | None = None,
        budget: Budget | None = None,
        prefetch_method: Literal["recall", "reflect"] = "recall",
        recall_max_tokens: int | None = None,
        timeout: float = 10.0,
        attempts: int = 3,
    ) -> None:
        hindsight = require("hindsight_client", "hindsight")
        bank = bank_id or os.environ.get("HINDSIGHT_BANK_ID") or "operator"
        self.bank_id = check_identifier(bank, "a bank id")
        depth = budget or os.environ.get("HINDSIGHT_RECALL_BUDGET") or "mid"
        self._budget = choice("hindsight", "budget", depth, _BUDGETS)
        methods = ("recall", "reflect")
        self._method = choice("hindsight", "prefetch_method", prefetch_method, methods)
        self._most: dict[str, int] = {}
        if recall_max_tokens is not None:
            check_whole(1, recall_max_tokens=recall_max_tokens)
            self._most = {"max_tokens": recall_max_tokens}
        url = service_url("hindsight", api_url, "HINDSIGHT_API_URL", _CLOUD)
        is_cloud = urlsplit(url).hostname == urlsplit(_CLOUD).hostname
        key = service_key("hindsight", api_key, _KEY, needed=is_cloud)
        self._service = Service("hindsight", _KEY, timeout=timeout, attempts=attempts)
        # Retried here, with events.
        self._client: Any = hindsight.Hindsight(url, key, timeout=timeout, max_attempts=1)
        self._scope: dict[str, Any] = {"tags": None, "tags_match": "exact"}

    @override
    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.bank_id!r})"

    def for_user(self, user_id: str) -> Self:
        """Return this provider for a user; it shares the connections."""
        view = copy.copy(self)
        tag = f"user:{check_identifier(user_id, 'a user id')}"
        view._scope = {"tags": [tag], "tags_match": "all_strict"}  # noqa: SLF001 - it is one of us
        return view

    @override
    async def prefetch(self, query: str, *, session_id: str = "") -> str:
        """Return the five best facts, one a line, or the server's answer."""
        if self._method == "reflect":
            return await self.reflect(query)
        return lines([each.content for each in await self.search(query, _RECALLED)])

    @override
    async def on_turn_complete(self, user: str, assistant: str, *, session_id: str = "") -> None:
        """Send the turn; the server extracts its facts later."""
        facts = {"source": "turn"} | ({"session_id": session_id} if session_id else {})
        await self._retain(f"User: {user}\nAssistant: {assistant}", facts, context="conversation")

    @override
    async def search(self, query: str, limit: int = 5) -> list[MemorySearchResult]:
        """Return the facts that match, the best first.

        Raises:
            ConfigurationError: The key was refused.
            BackendError: The server failed.
        """
        if not query.strip() or not check_limit(limit):
            return []
        asked = {"query": query, "budget": self._budget, **self._most, **self._scope}
        answer = await self._call(lambda: self._client.arecall(self.bank_id, **asked))
        return [_result(each) for each in answer.results[:limit]]

    @override
    async def remember(self, content: str) -> str:
        """Store a fact as a document; return the id of the document.

        The server extracts from it later, and gives ids of its own to what it extracts.
        """
        document = uuid4().hex
        await self._retain(content, {"source": "manual"}, document_id=document)
        return document

    @override
    async def reflect(self, query: str) -> str:
        """Return an answer that the server makes of many facts."""
        if not query.strip():
            return ""
        asked = {"query": query, "budget": self._budget, **self._scope}
        answer = await self._call(lambda: self._client.areflect(self.bank_id, **asked))
        return str(answer.text)

    @override
    async def shutdown(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    async def _retain(self, content: str, facts: dict[str, str], **options: Any) -> None:
        # The same operation in every attempt: the server stores it once.
        operation = str(uuid4())
        await self._call(
            lambda: self._client.aretain(
                self.bank_id,
                content,
                metadata=facts,
                tags=self._scope["tags"],
                retain_async=True,
                operation_id=operation,
                **options,
            )
        )

    async def _call(self, work: Callable[[], Any]) -> Any:
        errors = import_module("hindsight_client_api.exceptions")
        aiohttp = import_module("aiohttp")

        async def send() -> Any:
            # The text of the client's errors has the headers and the body of the answer.
            try:
                return await work()
            except errors.ApiException as error:
                raise self._service.refusal(int(error.status or 0)) from None
            except (aiohttp.ClientError, OSError) as error:
                if isinstance(error, TimeoutError):
                    raise
                raise self._service.unreachable(error) from None
            except (ValueError, TypeError, KeyError, AttributeError):
                # The models of the client, on an answer of another form.
                raise self._service.invalid() from None

        return await self._service.call(send)


def _result(found: Any) -> MemorySearchResult:
    score = getattr(getattr(found, "scores", None), "final", None)
    return MemorySearchResult(
        id=found.id,
        content=found.text,
        score=score if isinstance(score, int | float) else None,
        source=found.type or "hindsight",
        created_at=found.mentioned_at or found.occurred_start,
    )
