from __future__ import annotations

import pytest

from locus_memory.memory.extraction.distillate import Distillate, NoteDraft
from locus_memory.memory.layers.episodes import EpisodeBook
from locus_memory.memory.manager import LLMMemoryManager
from locus_memory.memory.scope import Scope
from locus_memory.messages import Message
from locus_memory.state import AgentState
from tests.memory.conftest import make_store, new_of

SCOPE = Scope(("locus_memory",))
LONG = "It rained in Graz the whole day, so we moved the meeting to the afternoon of Thursday."


class Distiller:
    """An extractor that makes one episode of each session, and remembers what it was given."""

    name = "distiller"

    def __init__(self, *answers):
        self.answers = list(answers)
        self.sessions = []

    async def distill(self, messages, memories):
        texts = [message.content for message in new_of(messages)]
        self.sessions.append(texts)
        answer = self.answers.pop(0) if self.answers else None
        if isinstance(answer, BaseException):
            raise answer
        if answer is not None:
            return answer
        return Distillate(notes=(NoteDraft(" / ".join(texts)[:600]),))

    async def extract(self, messages, memories):
        raise AssertionError("a session is distilled")


def turns_of(*texts):
    """The messages of a conversation, each text answered."""
    return [
        message
        for text in texts
        for message in (Message.user(text), Message.assistant(f"Noted: {text}"))
    ]


def run_of(messages, thread="t", **metadata):
    return AgentState(messages=tuple(messages), metadata={"thread_id": thread, **metadata})


async def episodes_of(store, scope=SCOPE):
    """The episodes of a scope, oldest first."""
    return (await EpisodeBook(store).newest(scope, 10_000))[::-1]


@pytest.fixture
def distiller():
    return Distiller


@pytest.fixture(params=["inmemory", "plain"])
async def either(request, clock, tmp_path):
    """A store with transactions, or one without."""
    made = make_store(request.param, clock, tmp_path)
    yield made
    await made.close()


@pytest.fixture
async def tend(either, clock):
    """Makes managers that tend their memory, and closes them."""
    made = []

    def manager(*, store=None, **options):
        told = {"extract_fn": Distiller(), "clock": clock, "extract_mode": "session_end"}
        options = {**told, **options}
        made.append(LLMMemoryManager(either if store is None else store, **options))
        return made[-1]

    yield manager
    for each in made:
        await each.close()
