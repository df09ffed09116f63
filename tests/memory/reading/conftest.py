from __future__ import annotations

import pytest

from locus_memory.backends.inmemory.store import InMemoryStore
from locus_memory.memory.layers.episodes import Episode, Note, episode_put
from locus_memory.memory.manager import LLMMemoryManager
from locus_memory.memory.models import Memory
from locus_memory.memory.scope import Scope
from locus_memory.messages import Message
from locus_memory.state import AgentState
from tests.memory.transcripts import transcript_puts


class Told:
    """An extractor that finds nothing: the tests save memories themselves."""

    name = "told"

    async def extract(self, messages, memories):
        return []


class World:
    """A manager that tends itself, its store, and ways to fill its scope."""

    def __init__(self, store, clock, manager):
        self.store, self.clock, self.manager = store, clock, manager
        self.scope = Scope(manager.namespace)

    async def knows(self, *texts, kind="user", **metadata):
        for text in texts:
            self.clock.advance(1)
            await self.manager.save([Memory(kind, text[:40], text, metadata)])

    async def always(self, text):
        await self.manager.identity.add(text)

    async def session(self, day, summary, *, decisions=(), **fields):
        moment = f"2026-03-{day:02}T10:00:00+00:00"
        episode = Episode(
            session_id=f"s{day}",
            started_at=moment,
            ended_at=moment,
            notes=(Note(summary), *(Note(each, "decision") for each in decisions)),
            **fields,
        )
        await self.manager._store.put_batch([episode_put(self.scope, episode)])

    async def said(self, thread, *texts, moment="2026-03-01T10:00:00+00:00"):
        roles = (Message.user, Message.assistant)
        messages = [roles[n % 2](text) for n, text in enumerate(texts)]
        puts = transcript_puts(self.scope, thread, messages, 1, moment)
        await self.manager._store.put_batch(puts)

    async def seen(self, *texts, thread="now", manager=None):
        """Return the messages that a model would see of a thread with these texts."""
        roles = (Message.user, Message.assistant)
        said = tuple(roles[n % 2](text) for n, text in enumerate(texts))
        state = AgentState(messages=said, metadata={"thread_id": thread})
        return (await (manager or self.manager).on_session_start(state)).messages

    async def shown(self, *texts, thread="now", manager=None):
        """Return the stable part and the tail of what a run is shown."""
        seen = await self.seen(*texts, thread=thread, manager=manager)
        stable = [each.content for each in seen if each.role == "system"]
        tail = seen[-1].content.removesuffix(texts[-1])
        return "".join(stable), tail


@pytest.fixture
async def make_world(clock):
    made = []

    def make(store=None, manager=None, **options):
        store = store or InMemoryStore(clock=clock)
        told = {"extract_fn": Told(), "max_memories": 5000, "extract_mode": "session_end"}
        options = {**told, "clock": clock, **options}
        manager = manager or LLMMemoryManager(store, **options)
        made.append(World(store, clock, manager))
        return made[-1]

    yield make
    for world in made:
        await world.manager.close()
        await world.store.close()


@pytest.fixture
def world(make_world):
    return make_world()
