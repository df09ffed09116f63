"""What the memory tools share: the bound verbs, the bounds of an answer, the writes of a run."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Annotated, Any, Final

import orjson
from pydantic import Field
from typing_extensions import override

from locus_memory._internal.neutral import neutralise
from locus_memory._internal.recent import RecentlyUsed
from locus_memory.agent.current import CURRENT_CALL
from locus_memory.conversation.roles import runs_off_record
from locus_memory.conversation.tokens import TokenCounter
from locus_memory.errors import ConfigurationError
from locus_memory.memory.extraction.extraction import check_sentence
from locus_memory.memory.manager import LLMMemoryManager
from locus_memory.memory.models import ORIGIN, MemorySearchResult, Origin
from locus_memory.memory.validity import VALIDITY
from locus_memory.retrieval.pack import pack

__all__ = [
    "MOST_FOUND",
    "AsOf",
    "At",
    "Row",
    "ValidFrom",
    "ValidTo",
    "Verbs",
    "Writes",
    "managed",
    "packed",
    "row",
    "shown",
    "verbs_of",
]

MOST_FOUND: Final = 10
"""The most results of one call."""

_TOKENS: Final = 800
_LONGEST: Final = 1_000
_MOST_WRITES: Final = 20
_RUNS: Final = 256
_MINUTE: Final = 60.0
_DAY: Final = 10
_DIGITS: Final = 3
_VERBS: Final = ("search", "remember", "forget", "reflect")

Row = dict[str, Any]

AsOf = Annotated[str | None, Field(description="only what was known at this moment, ISO 8601")]
At = Annotated[str | None, Field(description="only what was true at this moment, ISO 8601")]
ValidFrom = Annotated[
    str | None, Field(description="the first day on which it is true, as in 2026-05-12, if said")
]
ValidTo = Annotated[str | None, Field(description="the last day on which it is true, likewise")]


class Verbs:
    """The verbs of a memory, bound to one user; by default, those of a memory provider.

    Attributes:
        owner: The bound manager or provider.
        takes_moments: Whether the verbs take `as_of`, `at` and a validity.
        token_counter: Counts the tokens of an answer; `None` estimates them.
    """

    takes_moments = False

    def __init__(self, owner: Any) -> None:
        self.owner = owner
        self.token_counter: TokenCounter | None = None

    async def search(self, query: str, **then: Any) -> Sequence[MemorySearchResult]:
        """Return what matches, the best first."""
        found: Sequence[MemorySearchResult] = await self.owner.search(query, MOST_FOUND, **then)
        return found

    async def reflect(self, query: str, **then: Any) -> str:
        """Return an answer from many memories; empty if that is not supported."""
        return str(await self.owner.reflect(query, **then))

    async def remember(self, content: str, source: Mapping[str, Any], **validity: Any) -> str:
        """Keep a sentence; return its id."""
        del source, validity
        check_sentence(content)
        return str(await self.owner.remember(content))

    async def forget(self, memory_id: str, source: Mapping[str, Any]) -> bool:
        """Drop a memory; return whether it was there."""
        del source
        return bool(await self.owner.forget(memory_id))


class _ManagerVerbs(Verbs):
    """The verbs of an `LLMMemoryManager`, whose forgetting can be undone."""

    takes_moments = True

    def __init__(self, owner: LLMMemoryManager) -> None:
        super().__init__(owner)
        self.token_counter = owner.token_counter

    @override
    async def remember(self, content: str, source: Mapping[str, Any], **validity: Any) -> str:
        return str(await self.owner.remember(content, extractor="tool", source=source, **validity))

    @override
    async def forget(self, memory_id: str, source: Mapping[str, Any]) -> bool:
        return bool(await self.owner.delete(memory_id, origin=source[ORIGIN]))


def verbs_of(manager: Any, user_id: str | None) -> Verbs:
    """Return the verbs of a manager or provider, bound to one user.

    Args:
        manager: An `LLMMemoryManager`, or an object with the four verbs.
        user_id: The user; `None`: the scope of the manager itself.

    Raises:
        ConfigurationError: It is another object, or it serves no users and one is named.
        InvalidArgumentError: The user id is invalid.
    """
    if isinstance(manager, LLMMemoryManager):
        return _ManagerVerbs(managed(manager, user_id))
    if not all(callable(getattr(manager, verb, None)) for verb in _VERBS):
        raise ConfigurationError(
            f"a memory tool needs a memory manager or provider, not {type(manager).__name__}"
        )
    if user_id is None:
        return Verbs(manager)
    if not callable(getattr(manager, "for_user", None)):
        raise ConfigurationError(f"{type(manager).__name__} has no for_user(user_id)")
    return Verbs(manager.for_user(user_id))


def managed(manager: object, user_id: str | None) -> LLMMemoryManager:
    """Return an `LLMMemoryManager` bound to one user.

    Raises:
        ConfigurationError: It is another object.
        InvalidArgumentError: The user id is invalid.
    """
    if not isinstance(manager, LLMMemoryManager):
        raise ConfigurationError(f"this needs an LLMMemoryManager, not {type(manager).__name__}")
    if user_id is None:
        return manager.scoped(manager.namespace)
    return manager.for_user(user_id)


def row(found: MemorySearchResult) -> Row:
    """Return a result as a row of an answer."""
    since = found.created_at
    score = None if found.score is None else round(found.score, _DIGITS)
    day = since[:_DAY] if isinstance(since, str) else None
    told = {} if found.origin in (None, Origin.USER) else {"origin": str(found.origin)}
    told |= {name: each for name in VALIDITY if (each := getattr(found, name))}
    return {"id": found.id, "content": shown(found.content), "since": day, "score": score, **told}


def shown(text: str) -> str:
    """Return a text as one harmless line of at most 1,000 characters."""
    line = neutralise(text[: 2 * _LONGEST])
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]}..."


def packed(rows: Iterable[Row], counter: TokenCounter | None) -> list[Row]:
    """Return the first rows that fit an answer: at most 10, and 800 tokens."""
    listed = list(rows)[:MOST_FOUND]
    return list(pack(listed, _TOKENS, text_of=_text, counter=counter).items)


def _text(found: Row) -> str:
    return orjson.dumps(found).decode()


class Writes:
    """A count of the writes of each run: at most 20, and none off the record.

    Outside an agent there are no runs, and the writes of a minute count together.

    Args:
        clock: Returns monotonic seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._done = RecentlyUsed[int](_RUNS)

    def allow(self) -> str | None:
        """Count one more write; return why it is refused, or `None` if it is allowed.

        A run that is off the record writes nothing.
        """
        call = CURRENT_CALL.get()
        if call is not None and runs_off_record(call):
            return "refused: this conversation is off the record, so that no memory is changed"
        run = f"minute {int(self._clock() / _MINUTE)}" if call is None else call.run_id
        done = self._done.get(run) or 0
        if done >= _MOST_WRITES:
            return f"refused: at most {_MOST_WRITES} changes of memories are allowed in a run"
        self._done.put(run, done + 1)
        return None
