"""The memories that a run compares: ours, and the plain ones; those of other makers are in `peers`.

A memory gets one conversation, session by session, and then the questions about it. For each it
says what a model is shown of the conversation: a block of so many tokens.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property, partial
from importlib import import_module
from itertools import accumulate
from typing import Any, Final, Protocol

from typing_extensions import override

from locus_memory._internal.neutral import neutralise
from locus_memory.conversation.tokens import expected_tokens
from locus_memory.errors import ConfigurationError
from locus_memory.evaluation.dataset import Session
from locus_memory.evaluation.questions.asking import Counted
from locus_memory.evaluation.run import Plain
from locus_memory.memory.extraction.extractors import LLMExtractor
from locus_memory.memory.manager import LLMMemoryManager
from locus_memory.memory.scope import Scope
from locus_memory.registry import get_store
from locus_memory.retrieval.embedders.base import Embedder
from locus_memory.retrieval.embedding import embed
from locus_memory.retrieval.pack import pack
from locus_memory.retrieval.ranking.query import read_query
from locus_memory.retrieval.turns import Turn, index_turns

__all__ = [
    "FILLED_ONCE",
    "MEMORIES",
    "UNBOUNDED",
    "Block",
    "Memory",
    "message_of",
    "moment_of",
    "needed",
]

UNBOUNDED: Final = frozenset(("full-context",))
"""The memories that show the same whatever the budget is: a question is asked once, with 0."""

FILLED_ONCE: Final = frozenset(("langmem", "mem0"))
"""The memories that are others if they are filled again: what they show is kept for a resumed run.
"""

_SPACE: Final = ("memory",)
_HITS: Final = 200
_ROLES: Final = {"user": "user", "human": "user", "assistant": "assistant", "ai": "assistant"}
_LONGEST: Final = 86_400.0
"""The seconds that an extraction may take: a model that limits its rate is waited for."""


@dataclass(frozen=True, slots=True)
class Block:
    """What a model is shown for a question.

    Attributes:
        text: The text; empty: nothing.
        turns: The ids of the turns that it quotes, of each a passage at least; `None`: it tells in
            other words, so they are not known.
    """

    text: str
    turns: frozenset[str] | None = None


class Memory(Protocol):
    """A memory of one conversation."""

    async def ingest(self, session: Session, moment: datetime) -> None:
        """Take in the next session; sessions come in the order of their moments."""
        ...

    async def block(self, question: str, moment: datetime, budget: int) -> Block:
        """Return what a model is shown for a question, in a new session.

        Args:
            question: The question.
            moment: When it is asked.
            budget: The most tokens.
        """
        ...


def moment_of(session: Session) -> datetime | None:
    """Return the moment of a session, which is that of its first turn that has one."""
    told = next((turn.said_at for turn in session.turns if turn.said_at), None)
    return told if told is None or told.tzinfo else told.replace(tzinfo=UTC)


def message_of(turn: Turn) -> dict[str, str]:
    """Return the message of a turn: a person who is not called the user is named in its text."""
    role = _ROLES.get(turn.speaker.casefold())
    told = {"role": role or "user", "content": turn.words if role else turn.spoken}
    return told if turn.id is None else told | {"id": turn.id}


class _Ours:
    """The memory of this package, through its own `ingest`.

    Args:
        setting: What it may use.
        extracts: Whether the model extracts; else phrases are read.
        quotes: Whether the words of the turns are shown.
    """

    def __init__(
        self, model: Counted, embedder: Embedder | None, *, extracts: bool, quotes: bool
    ) -> None:
        self._embedder, self._quotes = embedder, quotes
        is_asked = extracts and model.follows_instructions
        self._extractor = LLMExtractor(model) if is_asked else None
        self._now, self._names = 0.0, dict[str, str]()
        self._store = get_store("memory", clock=self._clock)
        self._writer = self._manager(self._clock)

    def _clock(self) -> float:
        return self._now

    def _manager(self, clock: Callable[[], float], **options: Any) -> LLMMemoryManager:
        return LLMMemoryManager(
            self._store,
            namespace_prefix=_SPACE,
            extract_fn=self._extractor,
            embedder=self._embedder,
            clock=clock,
            # Extraction begins where it is told to, so that a run is the same each time.
            extract_mode="manual",
            extract_timeout=_LONGEST,
            timezone="UTC",
            **options,
        )

    async def ingest(self, session: Session, moment: datetime) -> None:
        self._now = moment.timestamp()
        turns = [message_of(turn) for turn in session.turns if turn.words.strip()]
        date = moment.isoformat()
        await self._writer.ingest("assistant", session.name, turns, session_date=date)
        await self._writer.sync_now()
        place = Scope(_SPACE).transcript(session.name)
        for item in await self._store.scan(place, len(turns)):
            self._names[f"{place[-1]}/{item.key}"] = str(item.metadata.get("turn"))
        if not self._quotes:
            await self._store.clear_namespace(place)

    async def block(self, question: str, moment: datetime, budget: int) -> Block:
        reader = self._manager(moment.timestamp, memory_budget_tokens=budget)
        plan = await reader.plan(question, explain=True)
        shown = (each for each in plan.lines if each.outcome in ("stable", "tail"))
        turns = frozenset(self._names[each.name] for each in shown if each.name in self._names)
        return Block(plan.block or "", turns if self._quotes else None)

    async def aclose(self) -> None:
        await self._writer.close()


class _FullContext:
    """All turns, as they were said."""

    def __init__(self) -> None:
        self.turns = dict[str, Turn]()

    async def ingest(self, session: Session, moment: datetime) -> None:
        del moment
        self.turns |= {str(turn.id): turn for turn in session.turns if turn.words.strip()}

    async def block(self, question: str, moment: datetime, budget: int) -> Block:
        del moment
        shown = set(await self.chosen(question, budget))
        lines = [_line(turn) for name, turn in self.turns.items() if name in shown]
        return Block("\n".join(lines), frozenset(shown))

    async def chosen(self, question: str, budget: int) -> Sequence[str]:
        """Return the ids of the turns that are shown."""
        del question, budget
        return list(self.turns)

    def fitting(self, names: Sequence[str], budget: int) -> Sequence[str]:
        """Return those of some turns that fit, the first ones first."""
        packed = pack(
            names, budget, text_of=lambda name: _line(self.turns[name]), counter=expected_tokens
        )
        return packed.items


class _LastTurns(_FullContext):
    """As many of the newest turns as fit, without a gap."""

    @override
    async def chosen(self, question: str, budget: int) -> Sequence[str]:
        names = list(reversed(self.turns))
        costs = (expected_tokens(_line(self.turns[name])) + 1 for name in names)
        return names[: bisect_right(list(accumulate(costs)), budget)]


class _WordSearch(_FullContext):
    """The turns that BM25 finds, without our ranking."""

    @override
    async def chosen(self, question: str, budget: int) -> Sequence[str]:
        return self.fitting(self._plain.by_words(question), budget)

    @cached_property
    def _plain(self) -> Plain:
        return Plain(list(self.turns.values()))


class _VectorSearch(_FullContext):
    """The turns that are nearest by their vectors, without our ranking."""

    def __init__(self, embedder: Embedder) -> None:
        super().__init__()
        self._embedder, self._store = embedder, get_store("memory")

    @override
    async def ingest(self, session: Session, moment: datetime) -> None:
        await super().ingest(session, moment)
        puts = await index_turns(_SPACE, session.turns, self._embedder, session=session.name)
        await self._store.put_batch(puts)

    @override
    async def chosen(self, question: str, budget: int) -> Sequence[str]:
        (vector,) = await embed(self._embedder, [read_query(question).text], "query")
        hits = await self._store.search_by_embedding(_SPACE, vector, _HITS)
        return self.fitting([str(hit.item.metadata["turn"]) for hit in hits], budget)


def _line(turn: Turn) -> str:
    day = f"({turn.said_at.date()}) " if turn.said_at else ""
    return f"{day}{neutralise(turn.spoken)}"


def needed(embedder: Embedder | None, name: str) -> Embedder:
    """Return the embedder that a memory needs.

    Raises:
        ConfigurationError: There is none.
    """
    if embedder is None:
        raise ConfigurationError(f"the memory {name!r} needs --embedder, such as local")
    return embedder


def _ours(
    model: Counted, embedder: Embedder | None, *, extracts: bool = True, quotes: bool = True
) -> aclosing[_Ours]:
    return aclosing(_Ours(model, embedder, extracts=extracts, quotes=quotes))


def _peers() -> Any:
    # They need packages that most programs have not.
    return import_module("locus_memory.evaluation.questions.peers")


MakeMemory = Callable[[Counted, Embedder | None], AbstractAsyncContextManager[Memory]]
"""Makes a memory from the model that extracts, and what finds by meaning (`None`: words alone)."""

MEMORIES: Final[dict[str, MakeMemory]] = {
    "ours": _ours,
    "ours-words": partial(_ours, extracts=False),
    "ours-notes": partial(_ours, quotes=False),
    "full-context": lambda *_: nullcontext(_FullContext()),
    "last-n": lambda *_: nullcontext(_LastTurns()),
    "bm25": lambda *_: nullcontext(_WordSearch()),
    "dense": lambda _, embedder: nullcontext(_VectorSearch(needed(embedder, "dense"))),
    "langmem": lambda *given: _peers().langmem(*given),
    "mem0": lambda *given: _peers().mem0(*given),
}
"""The memories by name: each makes one for a conversation, and closes it."""
