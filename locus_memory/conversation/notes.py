"""The notes of a memory in place of the older messages of a thread."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from dataclasses import replace
from hashlib import blake2b
from itertools import accumulate
from typing import Any, Final, NamedTuple, Protocol, Self

from typing_extensions import override

from locus_memory._internal.cancellation import raise_if_cancelled
from locus_memory._internal.recent import RecentlyUsed
from locus_memory.conversation.base import sound_groups
from locus_memory.conversation.cache import MessageCache
from locus_memory.conversation.factory import changed
from locus_memory.conversation.groups import Group
from locus_memory.conversation.roles import (
    is_memory_block,
    is_off_record,
    runs_off_record,
    split_block,
)
from locus_memory.conversation.selection import Size, newest_run
from locus_memory.conversation.summary.stored_summaries import SummaryStore
from locus_memory.conversation.summary.thread import Summary, Thread, message_digest, read_groups
from locus_memory.conversation.tokens import TokenCounter, as_token_counter, message_tokens
from locus_memory.conversation.window import SlidingWindowManager, check_positive
from locus_memory.errors import ConfigurationError, InvalidArgumentError, LocusMemoryError
from locus_memory.events import emit

__all__ = ["NotesManager", "NotesSource"]

_SHARES: Final = 3
"""The notes take at most one part of this many of the threshold, as the messages beside them do."""

_CHARACTERS_A_TOKEN: Final = 8
_REMEMBERED: Final = 1_024


class NotesSource(Protocol):
    """The memory that has the notes of threads, such as an `LLMMemoryManager` with a model."""

    @property
    def has_notes(self) -> bool:
        """Whether it makes notes."""
        ...

    @property
    def kept_notes(self) -> SummaryStore:
        """The notes that stand in place of messages."""
        ...

    async def for_run(self, state: Any) -> Self | None:
        """Return the memory of a run; `None`: it has none."""
        ...

    async def notes_of(
        self, state: Any, messages: Sequence[Any], bounds: Sequence[int]
    ) -> tuple[int, list[str]]:
        """Return the last bound up to which extraction has read, and the notes up to there."""
        ...

    async def condense_notes(self, lines: Sequence[str]) -> list[str]:
        """Return fewer lines of notes in place of these; none: no model condenses them."""
        ...


class _Head(NamedTuple):
    """The first lines of what is shown, and the notes that they stand for.

    Attributes:
        lines: The condensed lines; there are none if the notes were left out.
        notes: How many of the notes of the thread they stand for, from the oldest on.
        digest: The digest of exactly these notes.
    """

    lines: Sequence[str]
    notes: int
    digest: str

    @classmethod
    def of(cls, shown: Summary, notes: Sequence[str]) -> _Head:
        """Return the head of what was shown; an empty one if its notes are not there any more.

        Args:
            shown: What was shown.
            notes: All notes that are there now.
        """
        match shown.about:
            case {"lines": int(lines), "notes": int(count), "digest": str(digest)}:
                if digest == _digest(notes[:count]):
                    return cls(shown.text.split("\n")[:lines], count, digest)
            case _:
                pass
        return cls([], 0, "")

    def about(self) -> dict[str, Any] | None:
        """Return it as plain JSON, to keep beside its lines."""
        told = {"lines": len(self.lines), "notes": self.notes, "digest": self.digest}
        return told if self.notes else None


class NotesManager(SlidingWindowManager):
    """The notes of a memory in place of the older messages of a thread.

    While a conversation has at most `threshold_tokens`, all of it is shown. If it has more, the
    oldest whole turns, but for about the last `keep_tokens`, are replaced by one system message
    with the notes that extraction made of them. No model is called for what it has read already.
    What it has not read yet is extracted first, with the call that would come anyway. Until the
    conversation exceeds the threshold again, not a byte of the notes changes; then new ones are
    added at their end. If they exceed a third of the threshold, the model of the extractor
    condenses the older half into few lines, in one call. Without a model, or if it fails, the older
    half leaves. Either way the memory still has them.

    The notes that stand in place of messages are kept beside the memories for a day, for other
    processes and for forks, with the notes that condensed lines stand for. Erasure wins: when
    something is forgotten, the notes are read anew, and what is left is condensed anew.

    What is off the record has no notes, and stays as it is. If extraction fails, or the memory
    makes no notes, the newest messages that fit are shown, as by a `SlidingWindowManager` with
    `max_tokens`; a failure is the event `conversation.notes_failed`.

    An `Agent` binds the manager to each run. `apply`, and `async_apply` of a manager that is not
    bound to a run, only show the newest messages that fit.

    Args:
        memory: An `LLMMemoryManager` whose extractor makes notes, such as an `LLMExtractor`;
            `None`: the memory manager of the agent.
        threshold_tokens: The limit of tokens for all returned messages, but for the blocks of
            memories, which have a budget of their own.
        keep_tokens: About how many tokens of messages stay word for word when others are replaced;
            `None`: a third of the threshold.
        token_counter: Counts the tokens; see `as_token_counter`.

    Raises:
        ConfigurationError: The memory makes no notes.
        InvalidArgumentError: A number that is not positive, or `keep_tokens` above the threshold.
    """

    def __init__(
        self,
        memory: NotesSource | None = None,
        threshold_tokens: int = 30_000,
        keep_tokens: int | None = None,
        *,
        token_counter: object | None = None,
    ) -> None:
        if memory is not None and not getattr(memory, "has_notes", False):
            raise ConfigurationError(
                "a NotesManager needs a memory whose extractor makes notes:"
                " LLMMemoryManager(store, extract_fn=LLMExtractor(model))"
            )
        check_positive("threshold_tokens", threshold_tokens)
        super().__init__(None, max_tokens=threshold_tokens, token_counter=token_counter)
        self._threshold = threshold_tokens
        keep_tokens = check_positive("keep_tokens", keep_tokens)
        self._keep = keep_tokens or max(1, threshold_tokens // _SHARES)
        if self._keep > threshold_tokens:
            raise InvalidArgumentError(
                f"keep_tokens ({self._keep}) is above threshold_tokens ({threshold_tokens})"
            )
        self._memory = memory
        self._state: Any = None
        self._source: NotesSource | None = None
        self._count = count = as_token_counter(token_counter)
        self._tokens = self._sizes = MessageCache(lambda message: _tokens_of(message, count))
        self._digests = MessageCache(message_digest)
        self._failed = RecentlyUsed[bool](_REMEMBERED)

    def for_run(self, state: Any, memory: Any = None) -> Self:
        """Return this manager bound to a run.

        Args:
            state: The state of the run.
            memory: The memory of the agent, for a manager without one of its own.
        """
        bound, held = copy.copy(self), self._memory or memory
        bound._state = state  # noqa: SLF001 - one of us
        bound._source = held if getattr(held, "has_notes", False) else None  # noqa: SLF001
        return bound

    @override
    async def async_apply(self, messages: Sequence[Any]) -> list[Any]:
        groups = sound_groups(messages)
        told = [group for group in groups if not any(map(is_off_record, group.messages))]
        is_long = bool(told) and self._tokens_of(groups) > self._threshold
        source = await self._source.for_run(self._state) if is_long and self._source else None
        if source is None:
            return self.apply(messages)
        thread = replace(
            read_groups(told, self._digests, preserve_system=True),
            longest=self._threshold * _CHARACTERS_A_TOKEN,
        )
        apart = [group for group in groups if group not in told]
        shown = await source.kept_notes.newest(thread, 0) or thread.base
        fixed = self._tokens_of([*thread.pinned, *apart])
        # However much is fixed, many turns are replaced at once, and not a few each time.
        room = max(self._threshold - fixed, self._threshold // 2)
        if self._tokens_of(_parts(thread, shown)[len(thread.pinned) :]) > room:
            shown = await self._advanced(thread, source, shown, room)
        parts = sorted([*apart, *_parts(thread, shown)], key=lambda group: group.start)
        return self.apply([message for group in parts for message in group.messages])

    @override
    def _settings(self) -> dict[str, Any]:
        return {"threshold_tokens": self._threshold, "keep_tokens": self._keep}

    async def _advanced(
        self, thread: Thread, source: NotesSource, shown: Summary, room: int
    ) -> Summary:
        """Return the notes of more turns; those that were shown if there are no others.

        Args:
            thread: The conversation.
            source: The memory.
            shown: The notes so far.
            room: The tokens for notes and messages.
        """
        groups = thread.groups_after(shown.covered)
        first, _ = newest_run(groups, self._size, Size(math.inf, min(self._keep, room // 2)))
        cut = thread.bounds[len(thread.groups) - len(groups) + first]
        turns = [
            bound
            for bound, group in zip(thread.bounds, thread.groups, strict=False)
            if group.role == "user"
        ]
        bounds = [bound for bound in turns if shown.covered < bound <= cut]
        # What failed is tried again in the next turn.
        key = thread.digest_at(turns[-1]) if bounds else ""
        if not bounds or self._failed.get(key):
            return shown
        try:
            summary = await self._noted(thread, source, bounds, shown, room // _SHARES)
        except Exception as error:  # noqa: BLE001 - reported; it never fails the run
            raise_if_cancelled(error)
            self._failed.put(key, True)
            emit("conversation.notes_failed", error=error, messages=bounds[-1] - shown.covered)
            return shown
        emit(
            "conversation.noted",
            messages=summary.covered - shown.covered,
            covered=summary.covered,
            kept=thread.total - summary.covered,
        )
        return summary

    async def _noted(
        self, thread: Thread, source: NotesSource, bounds: Sequence[int], shown: Summary, most: int
    ) -> Summary:
        """Return the notes up to one of the bounds, which are kept.

        Args:
            thread: The conversation.
            source: The memory.
            bounds: How many messages it may be, ascending.
            shown: The notes that were shown.
            most: The most tokens of notes.

        Raises:
            LocusMemoryError: Extraction has not read so far.
            Exception: Any error of the store.
        """
        said = thread.messages_between(0, thread.total)
        known, summary = (0, [""]), thread.base
        # A note may be erased after it was read, and before it is kept: it is read again.
        while (told := await source.notes_of(self._state, said, bounds)) != known:
            known, bounds = told, told[:1]
            if not bounds[0]:
                raise LocusMemoryError("no extraction has read the messages")
            head = _Head.of(shown, told[1])
            if self._tokens_in([*head.lines, *told[1][head.notes :]]) > most:
                head = await self._headed(source, head, told[1], most)
            lines = [*head.lines, *told[1][head.notes :]]
            summary = thread.summary_of(bounds[0], "\n".join(lines), head.about())
            if runs_off_record(self._state):
                break
            await source.kept_notes.save(summary)
        return summary

    async def _headed(
        self, source: NotesSource, head: _Head, notes: Sequence[str], most: int
    ) -> _Head:
        """Return a head that stands for more notes: about the older half of what is shown.

        What was left out for want of a model is condensed as well, as far as one prompt has room.

        Args:
            source: The memory.
            head: The head so far.
            notes: All notes.
            most: The most tokens of notes.
        """
        first = len(notes) - len(self._newest(notes[head.notes :], most // 2))
        older = [*head.lines, *notes[head.notes if head.lines else 0 : first]]
        # A run off the record keeps nothing, so each of its steps would ask again.
        is_asked = older and not runs_off_record(self._state)
        read = self._newest(older, self._threshold)
        made = await source.condense_notes(read) if is_asked else []
        room = most - self._tokens_in(notes[first:])
        return _Head(self._newest(made, room), first, _digest(notes[:first]))

    def _newest(self, lines: Sequence[str], most: int) -> Sequence[str]:
        """Return the newest lines that have at most so many tokens."""
        sizes = accumulate(self._tokens_in([line]) for line in reversed(lines))
        return lines[len(lines) - sum(size <= most for size in sizes) :]

    def _tokens_in(self, lines: Sequence[str]) -> int:
        """Return the tokens of lines as they are shown."""
        return sum(self._count(f"- {line}\n") for line in lines)

    def _tokens_of(self, groups: Sequence[Group]) -> int:
        return sum(self._sizes.value(each) for group in groups for each in group.messages)

    def _size(self, group: Group) -> Size:
        return Size(len(group.messages), self._tokens_of([group]))


def _tokens_of(message: Any, count: TokenCounter) -> int:
    """Return the tokens of a message without a block of memories."""
    if is_memory_block(message):
        return 0
    found = split_block(message)
    return message_tokens(message if found is None else changed(message, content=found[1]), count)


def _digest(lines: Sequence[str]) -> str:
    return blake2b("\n".join(lines).encode(errors="replace"), digest_size=20).hexdigest()


def _parts(thread: Thread, summary: Summary) -> list[Group]:
    """Return what is shown of a conversation with these notes."""
    notes = [] if summary.message is None else [summary.message]
    # Sorting is stable: the notes come after the leading message at this place.
    placed = [Group(thread.leading - 1, "system", (each,)) for each in notes]
    return [*thread.pinned, *placed, *thread.groups_after(summary.covered)]
