"""The prompt cache of a provider holds from call to call of a thread.

Of what the call before was sent in front of its message, the same stands at the same place: system
prompt, memory and history together. The calls at which turns were replaced by notes, or notes were
condensed, are counted apart.
"""

from __future__ import annotations

import json
import re
from importlib.resources import files
from itertools import pairwise
from statistics import mean, median
from typing import NamedTuple

import pytest

from locus_memory.agent import Agent
from locus_memory.conversation.notes import NotesManager
from locus_memory.memory.models import Memory
from locus_memory.messages import Message


class Noting:
    """A model that answers as it is told; it notes each line that it reads, and condenses them."""

    def __init__(self):
        self.requests, self.answer, self.condensed = [], "", 0

    async def __call__(self, messages):
        system, told = messages[0].content or "", messages[-1].content
        if "JSON" not in system:
            self.requests.append([message.content for message in messages])
            return Message.assistant(self.answer)
        if system.startswith("Condense"):
            self.condensed += 1
            text = f"In part {self.condensed}, up to {told[-60:-10]}, they talked."
            note = {"text": text, "messages": [1]}
            return Message.assistant(json.dumps({"notes": [note]}))
        lines = re.findall(r"^(\d+)\. (?:\(.*?\) )?user: (.{1,60})", told, re.MULTILINE)
        notes = [{"text": f"The user said: {what}", "messages": [int(n)]} for n, what in lines]
        return Message.assistant(json.dumps({"changes": [], "notes": notes}))


class Measured(NamedTuple):
    """The shares that stayed, and how many calls were counted apart."""

    kept: list[float]
    apart: int
    condensed: int


def day(turns, threads):
    """Threads of which some go on later: the thread, what is said, and the answer."""
    often = turns // threads
    for turn in range(turns):
        thread = turn // often if turn % 10 < 8 else (turn // 10 * 7) % threads
        said = f"Turn {turn} is about the bird number {turn % 13}, which we saw in the park."
        yield str(thread), said, "All right, I have made a note of that bird for later."


def shipped(times):
    """The shipped conversation, in one thread, as often as said."""
    source = files("locus_memory.samples").joinpath("second-wind.json")
    sessions = json.loads(source.read_text("utf-8"))["sessions"]
    for _ in range(times):
        for session in sessions:
            for said, answer in pairwise(session["turns"]):
                if said["speaker"] == "Ines":
                    yield "boat", said["text"], answer["text"]


async def measured(where, turns, manager):
    model, before = Noting(), {}
    kept, apart = [], 0
    async with Agent(
        model,
        system_prompt="Be brief.",
        checkpointer=where,
        memory_manager=where,
        conversation_manager=manager,
    ) as agent:
        for number, (thread, said, model.answer) in enumerate(turns):
            await agent.run(said, thread)
            sent = model.requests.pop()
            if thread in before and noted(sent) != noted(before[thread]):
                apart += 1
            elif thread in before:
                kept.append(same(before[thread], sent))
            before[thread] = sent
            if number % 9 == 0:
                fact = Memory("project", f"bird{number}", f"The bird number {number} is a swan.")
                await agent.memory_manager.save([fact])
    return Measured(kept, apart, model.condensed)


def noted(sent):
    return [text for text in sent if "<summary>" in text]


def same(earlier, later):
    """Return how much of the earlier request, but its last message, begins the later one."""
    sent = "".join(earlier[:-1])
    now = "".join(later)
    if not sent:
        return 1.0
    shared = next((n for n, (a, b) in enumerate(zip(sent, now, strict=False)) if a != b), len(sent))
    return shared / len(sent)


SMALL = {"threshold_tokens": 1_200, "keep_tokens": 200}
CASES = {
    "a day": (lambda: day(200, 20), None, False),
    "a day, with notes": (lambda: day(200, 20), SMALL, False),
    "long threads, with notes": (lambda: day(200, 5), SMALL, True),
    "shipped": (lambda: shipped(2), None, False),
    "shipped, with notes": (lambda: shipped(5), {**SMALL, "threshold_tokens": 2_400}, True),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
async def test_the_prompt_cache_of_a_provider_holds(tmp_path, case):
    turns, sizes, is_long = CASES[case]
    manager = NotesManager(**sizes) if sizes else None
    found = await measured(f"sqlite:{tmp_path / 'agent.db'}", turns(), manager)
    assert len(found.kept) > 50
    assert median(found.kept) >= 0.99
    assert mean(found.kept) >= 0.95
    assert found.apart <= (len(found.kept) + found.apart) / 20
    assert (found.apart > 2) is is_long
    assert (found.condensed > 2) is is_long
