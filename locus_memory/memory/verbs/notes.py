"""The notes of one thread, in place of its older messages."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from operator import itemgetter
from typing import Any, Final

from locus_memory.conversation.summary.stored_summaries import SummaryStore
from locus_memory.memory.extraction.extraction import Extraction
from locus_memory.memory.extraction.thread import conversation, fork_of
from locus_memory.memory.layers.episodes import EpisodeBook
from locus_memory.memory.reading.lines import note_lines
from locus_memory.memory.scope import thread_of
from locus_memory.memory.verbs.sessions import SessionVerbs
from locus_memory.store.base import BaseStore

__all__ = ["NoteVerbs"]

_KEPT: Final = 86_400.0


class NoteVerbs(SessionVerbs):
    """The part of a memory manager that tells a `NotesManager` the notes of a thread."""

    _store: BaseStore
    _extraction: Extraction
    _episodes: EpisodeBook

    @property
    def has_notes(self) -> bool:
        """Whether notes are made of what is said: the extractor reads sessions as a whole."""
        return self._extraction.distils

    @property
    def kept_notes(self) -> SummaryStore:
        """The notes that stand in place of messages, kept for a day; an erasure drops them."""
        return SummaryStore(self._store, self._scope.blocks, ttl=_KEPT)

    async def notes_of(
        self, state: Any, messages: Sequence[Any], bounds: Sequence[int]
    ) -> tuple[int, list[str]]:
        """Return the notes of the first messages of a thread, and of how many messages they are.

        If extraction has not read up to the last bound, it does so first. What a tool told is left
        out, as in each system prompt.

        Args:
            state: The state of the run, which names its thread and what that was forked from.
            messages: All messages of the thread, oldest first.
            bounds: How many messages it may be, ascending.

        Returns:
            The greatest of the bounds up to which extraction has read, or 0, and a line with its
            day for each note, oldest first.

        Raises:
            BackendError: The store failed.
        """
        said, thread, fork = conversation(messages), thread_of(state), fork_of(state)
        told = [0, *accumulate(len(conversation((each,))) for each in messages)]
        read, before = await self._queue.read_of(self._scope, thread, said, fork)
        if read < told[bounds[-1]]:
            for each in (thread, *([fork.thread] if fork else ())):
                await self._worker.flush(self._scope.lane(each))
            read, before = await self._queue.read_of(self._scope, thread, said, fork)
        bound = max((each for each in bounds if told[each] <= read), default=0)
        last = {thread: before + told[bound]} | (
            {} if fork is None else {fork.thread: before + min(told[bound], fork.shared)}
        )
        return bound, await self._lines(thread, last, said, before) if bound else []

    async def _lines(
        self, thread: str, last: Mapping[str, int], said: Sequence[Any], before: int
    ) -> list[str]:
        """Return the notes of a thread, each at the place of the first message that says it.

        Args:
            thread: The thread.
            last: The number of the last message, in the thread and in that it was forked from.
            said: The conversation.
            before: The number of the message before it.
        """
        numbers = {
            name: number
            for number, each in enumerate(said, before + 1)
            for name in (f"#{number}", getattr(each, "id", None))
        }
        zone, found = self._sessions.zone, list[tuple[float, str]]()
        async for _, episode in self._episodes.scan(self._scope):
            first = {name: start for name, start, _ in episode.all_turns if name in last}
            for note in episode.notes:
                name = note.thread or episode.session_id
                places = [numbers[each] for each in note.message_ids if each in numbers]
                is_own = name == thread and name in first
                place = min(places, default=first[name] if is_own else math.inf)
                # A note of messages of which the fork does not have all is of the other thread.
                is_shared = name in first and len(places) == len(note.message_ids)
                if place <= last.get(name, 0) and (is_own or is_shared):
                    found += [
                        (place, f"{line.heading(zone)} {line.text[2:]}")
                        for line in note_lines(replace(episode, notes=(note,)))
                    ]
            if first and min(first.values()) <= before + 1:
                break
        # The episodes came from new to old, and each has its notes in order.
        return [text for _, text in sorted(found, key=itemgetter(0))]
