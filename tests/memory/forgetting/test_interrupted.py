"""Whatever the moment a forgetting is interrupted, repeating it finishes it."""

from __future__ import annotations

import itertools
import re
from contextlib import suppress

import pytest

from locus_memory.agent.loop import Agent
from locus_memory.backends.inmemory.store import InMemoryStore
from locus_memory.chat.scripted import ScriptedModel
from locus_memory.checkpoint.chain import DeltaCheckpointer
from locus_memory.conversation.summary.manager import SummarizingManager
from locus_memory.errors import BackendUnavailableError
from locus_memory.memory.extraction.extractors import as_extractor
from locus_memory.memory.forgetting.forget import forget
from locus_memory.memory.layers.episodes import Episode, Note, episode_put
from locus_memory.memory.manager import LLMMemoryManager
from locus_memory.memory.scope import Scope
from locus_memory.messages import Message
from locus_memory.state import AgentState
from locus_memory.store.item import Put
from locus_memory.store.view import StoreContext
from locus_memory.testing import FakeEmbedder
from tests.memory.transcripts import transcript_puts

NOW = "2026-03-01T10:00:00.000000+00:00"
VITALS = {"decayed_at": NOW, "pinned_at": NOW, "sources": [], "trained": []}


class Strike:
    """Counts what is erased, a thing a step, and lets the database be gone after some steps."""

    def __init__(self):
        self.left = 10**9

    def step(self):
        self.left -= 1
        if self.left < 0:
            raise BackendUnavailableError("gone")


class FailingStore(InMemoryStore):
    """A store that erases one item at a step."""

    def __init__(self, strike):
        super().__init__()
        self.strike = strike

    async def delete_batch(self, keys):
        for key in keys:
            self.strike.step()
            await super().delete_batch([key])

    async def clear_namespace(self, namespace, *, recursive=False):
        if await (self.list_namespaces if recursive else self.scan)(namespace, 1):
            self.strike.step()
        return await super().clear_namespace(namespace, recursive=recursive)


class FailingCheckpointer(DeltaCheckpointer):
    """A checkpointer that erases one thread at a step."""

    def __init__(self, strike):
        super().__init__()
        self.strike = strike

    async def delete(self, thread_id, checkpoint_id=None):
        self.strike.step()
        return await super().delete(thread_id, checkpoint_id)


async def live_everywhere(store, checkpointer):
    """Leave a trace of ada of each kind there is, twice and in a fork; and one of bob."""
    for user in ("ada", "bob"):
        summaries = SummarizingManager(4, 2, f"Lyon, {user}, {{}}".format, store=store)
        extractor = as_extractor(None)
        memories = LLMMemoryManager(store, extract_fn=extractor, embedder=FakeEmbedder())
        agent = Agent(
            ScriptedModel(),
            checkpointer=checkpointer,
            memory_manager=memories,
            conversation_manager=summaries,
        )
        for thread in (f"{user} 1", f"{user} 2"):
            for said in ("I live in Lyon.", "I live in Paris now.", "I live in Lyon."):
                await agent.run(f"{said} Please book {thread}.", thread, user_id=user)
            await store.put(("turns", thread), "1", {"text": "I live in Lyon."})
            await store.put(("turns", thread), "2", {"text": "I live in Paris now."})
        newest = await checkpointer.list_checkpoints(f"{user} 1", 1)
        await checkpointer.fork(f"{user} 1", newest[0], f"{user} fork")
        await store.put(("turns", f"{user} fork"), "1", {"text": "I live in Lyon."})
        await store.put(("sessions", f"{user} 1"), "1", {"text": f"of {user}"})
        scope = Scope(("locus_memory", "users", user))
        session = {"session_id": f"{user} 1", "started_at": NOW, "ended_at": NOW}
        said = [Message.user("I live in Lyon."), Message.user("Yes.")]
        await store.put_batch(
            [
                Put(namespace=scope.vitals, key="user:home", value=VITALS),
                episode_put(scope, Episode(notes=(Note(f"{user} talked."),), **session)),
                *transcript_puts(scope, f"{user} 1", said, 1, NOW),
            ]
        )
        await StoreContext(store, user_id=user).remember("tea", "green")
        lazy = LLMMemoryManager(store, extract_fn=wait_for_ever, extract_mode="manual")
        metadata = {"user_id": user, "thread_id": f"{user} 1"}
        said = (Message.user("I live in Lyon."),)
        await lazy.on_session_end(AgentState(messages=said, metadata=metadata))


async def wait_for_ever(messages):
    raise AssertionError(messages)


async def traces(store):
    """Return every item of ada's."""
    found = []
    for namespace in await store.list_namespaces(limit=10_000):
        found += [
            (namespace, item.key)
            for item in await store.scan(namespace, 10_000)
            if re.search(r"\bada\b", f"{namespace} {item.key} {item.value}")
        ]
    return found


@pytest.mark.parametrize("asked", [{}, {"key": "home", "threads": True}, {"query": "lyon"}])
async def test_whatever_the_moment_it_is_interrupted_the_next_time_finishes(asked):
    """Each time one more thing is erased, until nothing is left to erase."""
    wanted = {"user_id": "ada", **asked, "thread_namespaces": [("turns",)]}
    strike = Strike()
    store, checkpointer = FailingStore(strike), FailingCheckpointer(strike)
    await live_everywhere(store, checkpointer)
    of_bob = ["bob 1", "bob 2", "bob fork"]
    for steps in itertools.count():  # noqa: B007 - it is read after the loop
        strike.left = 1
        with suppress(BackendUnavailableError):
            await forget(store, checkpointer, **wanted)
        if strike.left >= 0:
            break
    assert steps > 10
    strike.left = 10**9
    assert (await forget(store, checkpointer, **wanted)).is_empty
    if "query" in asked:
        assert await checkpointer.list_threads() == ["ada 1", "ada 2", "ada fork", *of_bob]
        return
    left = await traces(store)
    assert left == ([(("users", "ada", "memories"), "tea")] if asked else [])
    assert await checkpointer.list_threads() == of_bob
