"""The notes of a memory in place of the older messages of a thread."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final, Protocol, Self

from typing_extensions import override

from locus_memory._internal.cancellation import raise_if_cancelled
from locus_memory._internal.recent import RecentlyUsed
from locus_memory.conversation.base import ConversationManager, sound_groups
from locus_memory.conversation.cache import MessageCache
from locus_memory.conversation.groups import Group
from locus_memory.conversation.roles import is_off_record, runs_off_record
from locus_memory.conversation.selection import Size, newest_run
from locus_memory.conversation.summary.stored_summaries import SummaryStore
from locus_memory.conversation.summary.thread import Summary, Thread, message_digest, read_groups
from locus_memory.conversation.tokens import as_token_counter, message_tokens
from locus_memory.conversation.window import check_positive, windowed
from locus_memory.errors import ConfigurationError, InvalidArgumentError
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


class NotesManager(ConversationManager):
    """The notes of a memory in place of the older messages of a thread.

    While a conversation has at most `threshold_tokens`, all of it is shown. If it has more, the
    oldest whole turns, but for about the last `keep_tokens`, are replaced by one system message
    with the notes that extraction made of them. No model is called for what it has read already.
    What it has not read yet is extracted first, with the call that would come anyway. Until the
    conversation exceeds the threshold again, not a byte of the notes changes; then new ones are
    added at their end. If they exceed a third of the threshold, the oldest leave, down to a sixth:
    the memory still has them.

    The place up to which notes stand is kept beside the memories for a day, for other processes and
    for forks. Erasure wins: when something is forgotten, the notes are read anew.

    What is off the record has no notes, and stays as it is. If extraction fails, or the memory
    makes no notes, the newest messages that fit are shown, as by a `SlidingWindowManager` with
    `max_tokens`; a failure is the event `conversation.notes_failed`.

    An `Agent` binds the manager to each run. `apply`, and `async_apply` of a manager that is not
    bound to a run, only show the newest messages that fit.

    Args:
        memory: An `LLMMemoryManager` whose extractor makes notes, such as an `LLMExtractor`;
            `None`: the memory manager of the agent.
        threshold_tokens: The limit of tokens for all returned messages.
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
        check_positive("keep_tokens", keep_tokens)
        self._threshold = threshold_tokens
        self._keep = keep_tokens or max(1, threshold_tokens // _SHARES)
        if self._keep > threshold_tokens:
            raise InvalidArgumentError(
                f"keep_tokens ({self._keep}) is above threshold_tokens ({threshold_tokens})"
            )
        self._memory = memory
        self._state: Any = None
        self._count = count = as_token_counter(token_counter)
        self._tokens = MessageCache(lambda message: message_tokens(message, count))
        self._digests = MessageCache(message_digest)
        self._failed = RecentlyUsed[bool](_REMEMBERED)

    def for_run(self, state: Any, memory: Any = None) -> Self:
        """Return this manager bound to a run.

        Args:
            state: The state of the run.
            memory: The memory of the agent, for a manager without one of its own.
        """
        bound = copy.copy(self)
        bound._state, bound._memory = state, self._memory or memory  # noqa: SLF001 - one of us
        return bound

    @override
    def apply(self, messages: Sequence[Any]) -> list[Any]:
        """Return the newest messages that fit, without notes: they are read by `async_apply`."""
        return self._shown([], sound_groups(messages))

    @override
    async def async_apply(self, messages: Sequence[Any]) -> list[Any]:
        groups = sound_groups(messages)
        told = [group for group in groups if not any(map(is_off_record, group.messages))]
        is_long = self._tokens_of(groups) > self._threshold
        source = await self._source() if is_long and told else None
        if source is None:
            return self._shown([], groups)
        thread = read_groups(told, self._digests, preserve_system=True)
        thread = replace(thread, longest=self._threshold * _CHARACTERS_A_TOKEN)
        apart = [group for group in groups if group not in told]
        summary = await source.kept_notes.newest(thread, 0) or thread.base
        if self._tokens_of([*_parts(thread, summary), *apart]) > self._threshold:
            summary = await self._advanced(thread, source, summary)
        return self._shown(apart, _parts(thread, summary))

    @override
    def _settings(self) -> dict[str, Any]:
        return {"threshold_tokens": self._threshold, "keep_tokens": self._keep}

    async def _source(self) -> NotesSource | None:
        """Return the memory of the run, if it makes notes."""
        if self._state is None or not getattr(self._memory, "has_notes", False):
            return None
        return None if self._memory is None else await self._memory.for_run(self._state)

    async def _advanced(self, thread: Thread, source: NotesSource, shown: Summary) -> Summary:
        """Return the notes of more turns; those that were shown if there are no others."""
        groups = thread.groups_after(shown.covered)
        first, _ = newest_run(groups, self._size, Size(math.inf, self._keep))
        cut = thread.bounds[len(thread.groups) - len(groups) + first]
        starts = zip(thread.bounds, thread.groups, strict=False)
        turns = [bound for bound, group in starts if group.role == "user"]
        bounds = [bound for bound in turns if shown.covered < bound <= cut]
        # What failed is tried again in the next turn.
        key = thread.digest_at(turns[-1]) if bounds else ""
        if not bounds or self._failed.get(key):
            return shown
        try:
            summary = await self._noted(thread, source, shown, bounds)
        except Exception as error:  # noqa: BLE001 - reported; it never fails the run
            raise_if_cancelled(error)
            emit("conversation.notes_failed", error=error, messages=bounds[-1] - shown.covered)
            summary = None
        if summary is None:
            self._failed.put(key, True)
        return summary or shown

    async def _noted(
        self, thread: Thread, source: NotesSource, shown: Summary, bounds: Sequence[int]
    ) -> Summary | None:
        """Return the notes up to one of the bounds, and keep them; `None`: nothing was read."""
        said = thread.messages_between(0, thread.total)
        read, lines = await source.notes_of(self._state, said, bounds)
        if not read:
            emit("conversation.notes_failed", messages=bounds[-1] - shown.covered)
            return None
        summary = thread.summary_of(read, "\n".join(self._fitting(shown.text, lines)))
        if not runs_off_record(self._state):
            await source.kept_notes.save(summary)
            again = await source.notes_of(self._state, said, [read])
            if again != (read, lines):
                # A note may have been erased after it was read, and before it was kept.
                await source.kept_notes.drop(summary)
                summary = thread.summary_of(read, "\n".join(self._fitting("", again[1])))
        messages = read - shown.covered
        emit("conversation.noted", messages=messages, covered=read, kept=thread.total - read)
        return summary

    def _fitting(self, shown: str, lines: Sequence[str]) -> Sequence[str]:
        """Return the lines from the first one that was shown on; the newest, if they are many."""
        first = shown.split("\n", 1)[0]
        start = lines.index(first) if first in lines else 0
        counts = [self._count(f"- {line}\n") for line in lines]
        room = self._threshold // _SHARES
        if sum(counts[start:]) > room:
            while sum(counts[start:]) > room // 2:
                start += 1
        return lines[start:]

    def _shown(self, apart: Sequence[Group], groups: Sequence[Group]) -> list[Any]:
        told = sorted([*apart, *groups], key=lambda group: group.start)
        pinned = [group for group in told if group.stays(preserve_system=True)]
        others = [group for group in told if not group.stays(preserve_system=True)]
        limit = Size(math.inf, self._threshold)
        is_long = self._tokens_of(told) > self._threshold
        return windowed(pinned, others, limit, self._tokens, start_on_user=is_long)

    def _tokens_of(self, groups: Sequence[Group]) -> int:
        return sum(self._tokens.value(each) for group in groups for each in group.messages)

    def _size(self, group: Group) -> Size:
        return Size(len(group.messages), self._tokens_of([group]))


def _parts(thread: Thread, summary: Summary) -> list[Group]:
    """Return what is shown of a conversation with these notes."""
    notes = [] if summary.message is None else [(summary.message,)]
    # Sorting is stable: the notes come after the leading message at this place.
    placed = [Group(thread.leading - 1, "system", each) for each in notes]
    return [*thread.pinned, *placed, *thread.groups_after(summary.covered)]
