"""Memories on request: what somebody asks a manager to remember, or to look for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from locus_memory._internal.neutral import neutralise
from locus_memory.chat.base import ChatModel
from locus_memory.errors import InvalidArgumentError
from locus_memory.events import emit
from locus_memory.memory.layers.episodes import Episode, read_episode
from locus_memory.memory.layers.log import log_put
from locus_memory.memory.ledger.ledger import Statement
from locus_memory.memory.ledger.likeness import same_content
from locus_memory.memory.ledger.revision import read_memory
from locus_memory.memory.models import (
    Memory,
    MemorySearchResult,
    MemoryType,
    Origin,
    check_origin,
    has_authority,
    origin_of,
    refusal,
)
from locus_memory.memory.recall.recall import Recall
from locus_memory.memory.recall.selection import Selection
from locus_memory.memory.scope import current_key
from locus_memory.memory.secrets.detection import find_secret
from locus_memory.memory.verbs.naming import named_memory
from locus_memory.memory.verbs.reflection import reflected
from locus_memory.memory.verbs.single import SingleMemories
from locus_memory.retrieval.hybrid import Hit, HybridSearch
from locus_memory.store.base import BaseStore

__all__ = ["ExplicitMemories", "check_sentence"]

_LONGEST: Final = 2_000
_REFLECTED: Final = 30


class ExplicitMemories(SingleMemories):
    """The part of a memory manager that people and tools call by name."""

    _recall: Recall
    _hybrid: HybridSearch
    _store: BaseStore
    _model: ChatModel | None
    _allow_secrets: bool

    async def search(
        self, query: str, limit: int = 5, *, origins: Iterable[Origin | str] | None = None
    ) -> list[MemorySearchResult]:
        """Return current memories that match a query, the best first; never the newest to fill up.

        Args:
            query: Their subject.
            limit: At most this many.
            origins: Only memories of these origins.

        Raises:
            InvalidArgumentError: The limit is not an integer of at least 0, or an origin is
                unknown.
            BackendError: The store failed.
        """
        return [_result(*e) for e in await self.search_memories(query, limit, origins=origins)]

    async def search_memories(
        self, query: str, limit: int = 5, *, origins: Iterable[Origin | str] | None = None
    ) -> list[tuple[Memory, float]]:
        """Return what `search` does, as memories with their scores."""
        return await self._recall.matching(self._scope, limit, query, Selection(origins=origins))

    async def search_episodes(self, query: str, limit: int = 5) -> list[tuple[Episode, float]]:
        """Return the digests of sessions that match a query, the best first, with their scores.

        Raises:
            InvalidArgumentError: The limit is not an integer of at least 0.
            BackendError: The store failed.
        """
        found = await self._hybrid.search(self._scope.episodes, query, limit)
        read = ((read_episode(hit.item), hit.score) for hit in found)
        return [(episode, score) for episode, score in read if episode is not None]

    async def search_transcript(self, query: str, limit: int = 5) -> list[Hit]:
        """Return the recorded turns of all threads that match a query, the best first.

        The metadata of an item has `speaker`, `date`, and `session`, which is the thread.

        Raises:
            InvalidArgumentError: The limit is not an integer of at least 0.
            BackendError: The store failed.
        """
        space = self._scope.transcripts
        return list(await self._hybrid.search(space, query, limit, recursive=True))

    async def remember(
        self, content: str, *, extractor: str = "manual", source: Mapping[str, Any] | None = None
    ) -> str:
        """Save a sentence, and return the id of its memory.

        It gets the key of phrases for facts such as a home, or else one of its own. A
        sentence that is known already keeps its memory and its id.

        Args:
            content: At most 2,000 characters.
            extractor: Written into the metadata: who asked for it.
            source: More metadata, such as `thread_id`, `message_ids` and `origin`, which is a
                person by default.

        Raises:
            InvalidArgumentError: The content is empty or too long, or looks like a secret, or it
                may not take the place of what the user or a person said.
            BackendError: The store failed.
        """
        check_sentence(content, allow_secrets=self._allow_secrets)
        facts = {"extractor": extractor, **(source or {})}
        memory = check_origin(await named_memory(content, metadata=facts))
        if memory.type is MemoryType.FEEDBACK and not has_authority(memory):
            # It is never a rule for the agent.
            memory = replace(memory, type=MemoryType.REFERENCE)
        return (await self._saved(memory)).id

    async def _saved(self, memory: Memory) -> Memory:
        """Return the memory as written, or else the known one with the same content."""
        edit = Statement(memory)
        written = await self._ledger.apply(self._scope, [edit])
        if written:
            return written[0]
        known = await self._ledger.duplicates(self._scope, [edit])
        name = current_key(memory.type, memory.key)
        item = await self._store.get_item(self._scope.current, known.get(name, name))
        found = None if item is None else read_memory(item)
        refused = found and refusal(found, memory.type, origin_of(memory))
        if found and refused and not same_content(found.content, memory.content):
            raise InvalidArgumentError(refused)
        return found or memory

    async def reflect(self, query: str) -> str:
        """Return a model's answer to a question from the memories that match it best.

        The answer has at most about 300 tokens, names the ids of its memories, and says so if they
        do not tell. It is empty if the manager has no model, or no memory matches.

        Raises:
            ModelError: The model failed.
            BackendError: The store failed.
        """
        if self._model is None:
            return ""
        found = await self.search_memories(query, _REFLECTED)
        if not found:
            return ""
        answer, entry = await reflected(self._model, query, [m for m, _ in found], self._ledger.now)
        await self._store.put_batch([log_put(self._scope, entry)])
        return answer


def check_sentence(content: str, *, allow_secrets: bool = False) -> None:
    """Check that a sentence may be remembered.

    Raises:
        InvalidArgumentError: It has no visible character or more than 2,000 characters, or it looks
            like a secret, which is also the event `memory.secret_dropped`.
    """
    given: object = content
    if not isinstance(given, str) or not neutralise(given) or len(given) > _LONGEST:
        raise InvalidArgumentError(f"a memory has 1 to {_LONGEST:,} characters of content")
    kind = None if allow_secrets else find_secret(content)
    if kind is not None:
        emit("memory.secret_dropped", type=MemoryType.USER.value, kind=kind)
        raise InvalidArgumentError(f"this looks like a secret ({kind}), and is not kept")


def _result(memory: Memory, score: float | None) -> MemorySearchResult:
    facts = memory.metadata
    return MemorySearchResult(
        id=memory.id,
        content=memory.content,
        score=score,
        source=str(facts.get("extractor") or ""),
        created_at=facts.get("valid_from") or facts.get("extracted_at"),
        origin=origin_of(memory),
    )
