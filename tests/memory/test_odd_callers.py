"""What a caller hands in may be odd in type: nothing is lost, and nothing outlives an erasure."""

from __future__ import annotations

import asyncio
import json
from types import SimpleNamespace

import pytest

from locus_memory.backends.inmemory.store import InMemoryStore
from locus_memory.conversation.roles import BLOCK_CLOSE, STABLE_OPENING
from locus_memory.events import collect
from locus_memory.memory import forget
from locus_memory.memory.base import BaseMemoryManager
from locus_memory.memory.extraction.extractors import LLMExtractor
from locus_memory.memory.inject import inject, placed
from locus_memory.memory.manager import LLMMemoryManager
from locus_memory.memory.models import Memory
from locus_memory.memory.options import MemoryOptions
from locus_memory.messages import Message
from locus_memory.state import AgentState

HOME = "I live in Graz with my two cats and a dog."


def state(thread, *messages):
    return AgentState(messages=messages, metadata={"thread_id": thread})


async def test_messages_with_numbers_for_ids_are_erased_with_what_came_from_them():
    async def extract(messages):
        ids = [int(each.id) for each in messages]
        return [Memory("user", "home", "The user lives in Graz.", {"message_ids": ids})]

    store = InMemoryStore()
    async with LLMMemoryManager(store, extract_fn=extract) as manager:
        for number in ("1", "2"):
            said = Message(role="user", id=number, content=HOME)
            await manager.on_session_end(state(f"thread {number}", said))
        [memory] = [each async for each in manager.memories()]
        [vitals] = await manager.vitals([memory])
    assert vitals.messages == (("thread 1", "1"), ("thread 2", "2"))
    assert (await forget(store, key="home")).turns == 2


@pytest.mark.parametrize(
    "damage", [{"use_count": "many"}, {"trained": 7}, {"messages": [["x"], 7]}]
)
async def test_a_damaged_record_hides_no_statement_from_an_erasure(damage):
    async def extract(messages):
        return [Memory("user", "home", "The user lives in Graz.")]

    store = InMemoryStore()
    async with LLMMemoryManager(store, extract_fn=extract) as manager:
        for thread in ("one", "two"):
            await manager.on_session_end(state(thread, Message.user(HOME)))
    space = ("locus_memory", "vitals")
    [item] = await store.scan(space)
    extra = damage.get("messages", [])
    value = {**item.value, **damage, "messages": [*extra, *item.value["messages"]]}
    await store.put(space, item.key, value, text="")
    assert (await forget(store, key="home")).turns == 2


async def test_a_job_of_the_first_version_that_was_tried_once_is_read():
    async def answer(messages):
        change = {
            "op": "add",
            "type": "user",
            "key": "home",
            "content": "In Graz.",
            "messages": [1],
        }
        return Message.assistant(json.dumps({"changes": [change]}))

    store = InMemoryStore()
    options = {"extract_fn": LLMExtractor(answer), "extract_mode": "manual"}
    async with LLMMemoryManager(store, **options) as manager:
        await manager.on_session_end(state("t", Message.user(HOME)))
    queue = ("locus_memory", "queue")
    [item] = await store.scan(queue)
    await store.put(queue, item.key, {**item.value, "queued_at": None}, text="")
    async with LLMMemoryManager(store, **options) as manager:
        assert await manager.sync_now() == 0
        assert [each.content for each in await manager.retrieve()] == ["In Graz."]


async def test_tokens_may_be_fractions():
    async with LLMMemoryManager(
        InMemoryStore(), extract_fn=None, token_counter=lambda text: len(text) / 4
    ) as manager:
        await manager.remember("Ada lives in Graz.")
        blocks = set()
        for number in range(3):
            shown = await manager.on_session_start(state("t", Message.user(f"Hello {number}?")))
            blocks.add(shown.messages[0].content)
            await manager.remember(f"Ada knows {number}.")
        assert len(blocks) == 1
        assert len(await manager.saw("t")) == 3


class SlowLog(InMemoryStore):
    """A store that writes no entry of a log until it may."""

    def __init__(self):
        super().__init__()
        self.may = asyncio.Event()

    async def put_batch(self, puts):
        if any(put.namespace[-1] == "log" for put in puts):
            await self.may.wait()
        return await super().put_batch(puts)


class Asked:
    """An extractor that finds nothing, with a model that says yes."""

    name = "asked"

    async def extract(self, messages, memories):
        return []

    async def model(self, messages):
        return Message.assistant("yes")


async def test_a_run_does_not_wait_for_the_log_of_its_gate():
    store, options = SlowLog(), MemoryOptions(gate="model")
    async with LLMMemoryManager(store, extract_fn=Asked(), options=options) as manager:
        await manager.on_session_end(state("t", Message.user("I moved to Lisbon with two cats.")))
        async with asyncio.timeout(10):
            assert "two cats" in (await manager.plan("How big is Lisbon?")).tail
        store.may.set()
    kinds = [item.value["kind"] for item in await store.scan(("locus_memory", "log"))]
    assert kinds == ["distill", "gate"]


class Own(BaseMemoryManager):
    """A manager of one's own, whose `extract` returns whatever it is given."""

    def __init__(self, found):
        super().__init__()
        self.found, self.saved = found, []

    async def extract(self, messages):
        return self.found

    async def save(self, memories):
        self.saved += memories

    async def retrieve(self, query=None, *, limit=20):
        return []


MEMORY = Memory("user", "home", "The user lives in Graz.")


@pytest.mark.parametrize("found", [MEMORY, [MEMORY], iter([MEMORY]), (each for each in [MEMORY])])
async def test_a_manager_of_ones_own_may_return_an_iterator(found):
    manager = Own(found)
    await manager.on_session_end(state("t", Message.user(HOME)))
    assert manager.saved == [MEMORY]


async def test_an_iterator_that_fails_is_a_failed_extraction():
    def failing():
        yield MEMORY
        raise RuntimeError("out of order")

    manager = Own(failing())
    with collect() as events:
        await manager.on_session_end(state("t", Message.user(HOME)))
    assert [event.name for event in events] == ["memory.extract_failed"]
    assert manager.saved == []


def test_a_stable_block_alone_stays_where_it_is():
    messages = [Message.system("Be brief."), Message.user("Hello")]
    shown = inject(messages, None, "user", stable=f"{STABLE_OPENING}Known.\n{BLOCK_CLOSE}")
    summarised = [*shown[:2], Message.system("A summary."), *shown[2:]]
    assert placed(summarised, "user") == summarised


@pytest.mark.parametrize("role", ["developer", "function", "critic"])
async def test_messages_of_unknown_roles_are_no_conversation(role):
    messages = [
        SimpleNamespace(role=role, content="I live in Rome.", id=1, name=2),
        SimpleNamespace(role="user", content="I live in Graz.", id=3, name=4),
    ]
    async with LLMMemoryManager(InMemoryStore()) as manager:
        found = await manager.extract(messages)
    assert [each.content for each in found] == ["The user lives in Graz."]
    assert found[0].metadata["message_ids"] == ["3"]


async def test_what_is_only_said_again_is_as_important_as_before():
    async with LLMMemoryManager(InMemoryStore()) as manager:
        fact = Memory("user", "home", "The user lives in Graz.", {"importance": 0.1})
        await manager.save([fact])
        done = await manager.ingest(
            "helper", "c", [{"user": "I live in Graz.", "assistant": "Ok."}]
        )
        [known] = [each async for each in manager.memories()]
    assert (known.metadata["importance"], done["facts"]) == (0.1, 0)
