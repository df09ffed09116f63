"""The memory provider over Supermemory, by its HTTP API, version 5.

Its own package, `supermemory`, is not used: the requests are few, and here they have the time
limits, the retries and the errors of every provider.

Protocol: https://docs.supermemory.ai, and the package `supermemory` 5.0.1
"""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, Field
from typing_extensions import override

from locus_memory.memory.models import MemorySearchResult
from locus_memory.memory.providers.service import ServiceProvider, path_part
from locus_memory.store.item import check_identifier

__all__ = ["SupermemoryProvider"]


class _Fact(BaseModel):
    id: str
    memory: str | None = None
    chunk: str | None = None
    similarity: float | None = None
    metadata: dict[str, Any] = Field(default_factory=dict)
    system: dict[str, Any] = Field(default_factory=dict)


class _Found(BaseModel):
    results: list[_Fact]


class _Done(BaseModel):
    id: str = ""
    count: int = 0


class SupermemoryProvider(ServiceProvider):
    """Memories of Supermemory, which learns facts from turns by itself.

    The user of a run is the namespace of every request. A run without a user is refused, unless
    `user_id` names one.

    Args:
        api_key: By default `SUPERMEMORY_API_KEY`. The cloud needs one.
        api_url: The server; by default `SUPERMEMORY_API_URL`, else that of Supermemory.
        user_id: The user of runs without a user.
        timeout: The seconds that one attempt of a request may take.
        attempts: How often a request is tried if the service is overloaded or unreachable.

    Raises:
        ConfigurationError: No key, or an option that cannot work.
        MissingDriverError: The package `httpx` is not installed.
    """

    _name = "supermemory"
    _cloud = "https://api.supermemory.ai"

    @override
    async def on_turn_complete(self, user: str, assistant: str, *, session_id: str = "") -> None:
        """Send the turn; the service learns its facts later."""
        facts = {"source": "turn"} | ({"session_id": session_id} if session_id else {})
        await self._add(f"User: {user}\nAssistant: {assistant}", facts)

    @override
    async def _found(self, query: str, limit: int) -> list[MemorySearchResult]:
        body = {"query": query, "limit": limit}
        answer = await self._request("POST", self._where("search"), _Found, body)
        return [_result(each) for each in answer.results]

    @override
    async def remember(self, content: str) -> str:
        """Store a fact as a document, which the service reads later; return the document's id."""
        return await self._add(content, {"source": "manual"})

    @override
    async def forget(self, memory_id: str) -> bool:
        """Remove a memory of the user from recall; return whether it was there."""
        body = {"ids": [check_identifier(memory_id, "a memory id")]}
        return (await self._request("DELETE", self._where("memories"), _Done, body)).count > 0

    async def _add(self, content: str, metadata: dict[str, str]) -> str:
        body = {"content": content, "metadata": metadata}
        return (await self._request("POST", self._where("document"), _Done, body)).id

    def _where(self, what: str) -> str:
        return f"/ns/{path_part(self._user_id, 'a user id')}/{what}"


def _result(found: _Fact) -> MemorySearchResult:
    told, source = found.memory or found.chunk or "", found.metadata.get("source")
    since = found.system.get("createdAt") or found.system.get("updatedAt")
    return MemorySearchResult(
        id=found.id,
        content=told,
        score=found.similarity,
        source=source if isinstance(source, str) else "supermemory",
        created_at=since if isinstance(since, str) else None,
    )
