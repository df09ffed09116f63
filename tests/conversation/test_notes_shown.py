"""Of any notes, in any order of events: what is shown is bounded, grows at its end, and is true."""

from __future__ import annotations

import asyncio
import re

from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from locus_memory import AgentState, Message, NotesManager
from locus_memory.backends.inmemory.store import InMemoryStore
from locus_memory.conversation.summary.stored_summaries import SummaryStore
from locus_memory.conversation.tokens import count_tokens

SPACE = ("notes",)
THRESHOLD, TURNS = 600, 50


class Source:
    """A memory with a note for each message of the user, of so many words."""

    has_notes = True

    def __init__(self, words, *, condenses):
        self.words, self.condenses, self.erased, self.calls = words, condenses, [], 0
        self.store = InMemoryStore()

    @property
    def kept_notes(self):
        return SummaryStore(self.store, SPACE)

    async def for_run(self, state):
        return self

    async def notes_of(self, state, messages, bounds):
        said = [int(each.content.split()[0]) for each in messages[: bounds[-1] : 2]]
        return bounds[-1], [self.note(n) for n in said if n not in self.erased]

    def note(self, number):
        return f"2026-01-01: note {number} {'word ' * self.words[number % len(self.words)]}".strip()

    async def condense_notes(self, lines):
        self.calls += 1
        told = [each for line in lines for each in read(line)[0]]
        made = f"2026-01-01: notes {told[0]} to {told[-1]} without {len(self.erased)}"
        return [made] if self.condenses else []

    async def erase(self, number):
        self.erased.append(number)
        await self.store.clear_namespace(SPACE)


def read(line):
    """Return the numbers of the notes that a line stands for, and how many were erased before."""
    first, *others = map(int, re.findall(r"\d+", line.partition(": ")[2]))
    last, erased = others or (first, 0)
    return range(first, last + 1), erased


def shown_in(sent):
    found = [each.content for each in sent if "<summary>" in each.content]
    return [line[2:] for line in found[0].splitlines()[2:-1]] if found else []


@settings(deadline=None, max_examples=6, phases=[Phase.explicit, Phase.generate])
@given(
    words=st.lists(st.integers(1, 12), min_size=1, max_size=8),
    erasures=st.dictionaries(st.integers(1, TURNS), st.integers(0, TURNS), max_size=3),
    condenses=st.booleans(),
)
def test_notes_are_bounded_appended_and_true(words, erasures, condenses):
    asyncio.run(check(words, erasures, condenses=condenses))


async def check(words, erasures, *, condenses):
    source = Source(words, condenses=condenses)
    said, before, calls = [], [], 0
    for number in range(TURNS):
        said.append(Message.user(f"{number} {'said ' * 20}"))
        is_erased = erasures.get(number, number) < number
        if is_erased:
            await source.erase(erasures[number])
        manager = NotesManager(source, THRESHOLD, 150).for_run(AgentState(run_id="r"))
        sent = await manager.async_apply(said)
        assert count_tokens(sent) <= THRESHOLD
        lines = shown_in(sent)
        if source.calls == calls and not is_erased:
            assert lines[: len(before)] == before
        told = [read(line) for line in lines]
        for notes, erased in told:
            assert set(notes).isdisjoint(source.erased[erased:])
        starts = [notes[0] for notes, _ in told]
        assert starts == sorted(set(starts))
        before, calls = lines, source.calls
        said.append(Message.assistant(f"All right, {number}. {'done ' * 20}"))
    if condenses:
        assert source.calls <= TURNS // 6 + 2 * len(erasures)
        # What one prompt has no room for, when all is read anew, is left out.
        assert source.erased or told[0][0][0] == 0
