"""The memory provider over a Hindsight server, by its HTTP API.

Its own package, `hindsight-client`, is not used: it installs a second HTTP client and models of
the whole API, of which three requests are needed.

Protocol: https://hindsight.vectorize.io/developer/api/quickstart
"""

from __future__ import annotations

import os
from typing import Any, Literal
from uuid import uuid4

from pydantic import BaseModel
from typing_extensions import override

from locus_memory.memory.models import MemorySearchResult
from locus_memory.memory.options import check_one_of, check_whole
from locus_memory.memory.providers.service import ServiceProvider, path_part
from locus_memory.store.item import check_identifier

__all__ = ["HindsightProvider"]

Budget = Literal["low", "mid", "high"]


class _Fact(BaseModel):
    id: str
    text: str
    type: str | None = None
    mentioned_at: str | None = None
    occurred_start: str | None = None
    scores: dict[str, Any] | None = None


class _Recalled(BaseModel):
    results: list[_Fact]


class _Reflected(BaseModel):
    text: str


class _Retained(BaseModel):
    success: Literal[True]


class HindsightProvider(ServiceProvider):
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
        recall_max_tokens: The most tokens of recalled facts; `None`: the default of the server.
        timeout: The seconds that one attempt of a request may take.
        attempts: How often a request is tried if the server is overloaded or unreachable.

    Raises:
        ConfigurationError: No key for the cloud, or an option that cannot work.
        MissingDriverError: The package `httpx` is not installed.
    """

    _name = "hindsight"
    _cloud = "https://api.hindsight.vectorize.io"

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
        super().__init__(api_key=api_key, api_url=api_url, timeout=timeout, attempts=attempts)
        bank = bank_id or os.environ.get("HINDSIGHT_BANK_ID") or "operator"
        self.bank_id = check_identifier(bank, "a bank id")
        self._bank = f"/v1/default/banks/{path_part(bank, 'a bank id')}"
        self._budget = budget or os.environ.get("HINDSIGHT_RECALL_BUDGET") or "mid"
        check_one_of(("low", "mid", "high"), budget=self._budget)
        check_one_of(("recall", "reflect"), prefetch_method=prefetch_method)
        self._method = prefetch_method
        if recall_max_tokens is not None:
            check_whole(1, recall_max_tokens=recall_max_tokens)
        self._most = recall_max_tokens

    @override
    async def prefetch(self, query: str, *, session_id: str = "") -> str:
        """Return the five best facts, one a line, or the server's answer."""
        if self._method == "reflect":
            return await self.reflect(query)
        return await super().prefetch(query, session_id=session_id)

    @override
    async def on_turn_complete(self, user: str, assistant: str, *, session_id: str = "") -> None:
        """Send the turn; the server extracts its facts later."""
        facts = {"source": "turn"} | ({"session_id": session_id} if session_id else {})
        told = f"User: {user}\nAssistant: {assistant}"
        await self._retain(content=told, metadata=facts, context="conversation")

    @override
    async def _found(self, query: str, limit: int) -> list[MemorySearchResult]:
        more = {} if self._most is None else {"max_tokens": self._most}
        # The server looks up the entities of the facts unless it is told not to.
        asked = {**self._asked(query), **more, "include": {"entities": None}}
        answer = await self._request("POST", f"{self._bank}/memories/recall", _Recalled, asked)
        return [_result(each) for each in answer.results]

    @override
    async def remember(self, content: str) -> str:
        """Store a fact as a document; return the id of the document.

        The server extracts from it later, and gives ids of its own to what it extracts.
        """
        document = uuid4().hex
        facts = {"source": "manual"}
        await self._retain(content=content, metadata=facts, document_id=document)
        return document

    @override
    async def reflect(self, query: str) -> str:
        """Return an answer that the server makes of many facts."""
        if not query.strip():
            return ""
        path = f"{self._bank}/reflect"
        return (await self._request("POST", path, _Reflected, self._asked(query))).text

    async def _retain(self, **item: Any) -> None:
        # The same operation in every attempt: the server stores it once.
        operation = str(uuid4())
        items = [{**item, "tags": self._tags}]
        body = {"items": items, "async": True, "operation_id": operation}
        await self._request("POST", f"{self._bank}/memories", _Retained, body)

    @property
    def _tags(self) -> list[str] | None:
        return None if self._user is None else [f"user:{self._user}"]

    def _asked(self, query: str) -> dict[str, Any]:
        """Return what a question has: its text, how thoroughly to search, and whose facts."""
        match = "exact" if self._user is None else "all_strict"
        return {"query": query, "budget": self._budget, "tags": self._tags, "tags_match": match}


def _result(found: _Fact) -> MemorySearchResult:
    score = (found.scores or {}).get("final")
    return MemorySearchResult(
        id=found.id,
        content=found.text,
        score=score if isinstance(score, int | float) else None,
        source=found.type or "hindsight",
        created_at=found.mentioned_at or found.occurred_start,
    )
