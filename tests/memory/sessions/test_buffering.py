"""The chat path: one write a turn, and no read after the first turn."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from contextvars import ContextVar

import pytest

from locus_memory.backends.inmemory.store import InMemoryStore
from locus_memory.backends.sqlite.store import SQLiteStore
from locus_memory.errors import InvalidArgumentError, InvalidKeyError
from locus_memory.memory.manager import LLMMemoryManager
from locus_memory.memory.models import Memory
from locus_memory.memory.scope import Scope
from locus_memory.messages import Message, ToolCall, ToolResult
from locus_memory.store.wrappers import StoreWrapper
from tests.memory.sessions.conftest import LONG, SCOPE, Distiller, episodes_of, run_of, turns_of

IS_ON_CHAT_PATH = ContextVar("IS_ON_CHAT_PATH", default=False)
WRITES = {"put", "put_batch", "write_batch", "put_with_embedding", "delete", "delete_batch"}
READS = {"get", "get_item", "get_batch", "exists", "scan", "list_keys", "search"}


class CountingStore(StoreWrapper):
    """A store that counts the calls of its verbs on the chat path, and elsewhere."""

    def __init__(self, store):
        super().__init__(store)
        self.chat, self.background = Counter(), Counter()

    def __getattribute__(self, name):
        if name in WRITES or name in READS:
            counted = self.chat if IS_ON_CHAT_PATH.get() else self.background
            counted["writes" if name in WRITES else "reads"] += 1
        return super().__getattribute__(name)


async def turn(manager, state):
    """The end of a turn; tasks that it starts are not on the chat path."""
    task = asyncio.current_task()
    token = IS_ON_CHAT_PATH.set(True)
    factory = asyncio.get_running_loop().get_task_factory()

    def off_path(loop, coroutine, **options):
        context = options.pop("context", None)
        made = asyncio.Task(coroutine, loop=loop, context=context, **options)
        if made is not task and context is not None:
            context.run(IS_ON_CHAT_PATH.set, False)
        return made

    asyncio.get_running_loop().set_task_factory(off_path)
    try:
        await manager.on_session_end(state)
    finally:
        asyncio.get_running_loop().set_task_factory(factory)
        IS_ON_CHAT_PATH.reset(token)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["inmemory", "sqlite"])
async def test_a_thousand_turns(clock, tmp_path, kind):
    """Calls: at most one a session; writes on the chat path: one a turn."""
    inner = InMemoryStore(clock=clock) if kind == "inmemory" else SQLiteStore(tmp_path / "m.db")
    store, model, chance = CountingStore(inner), Distiller(), random.Random(3)
    manager = LLMMemoryManager(store, extract_fn=model, clock=clock, extract_mode="session_end")
    await manager.open()
    left, long, number = 1000, 0, 0
    while left:
        length = min(left, chance.randint(1, 30))
        is_long = chance.random() < 0.7
        texts = [LONG if is_long else "Ok"] * (length if is_long else min(length, 3))
        left, number, long = left - len(texts), number + 1, long + is_long
        for count in range(1, len(texts) + 1):
            before = Counter(store.chat)
            clock.advance(20)
            await turn(manager, run_of(turns_of(*texts[:count]), f"s{number}", user_id="ada"))
            assert store.chat["writes"] - before["writes"] == 1
            assert store.chat["reads"] - before["reads"] == (1 if count == 1 else 0)
    assert await manager.sync_now() == 0
    assert store.chat["writes"] == 1000
    assert long <= len(model.sessions) < number
    assert sum(map(len, model.sessions)) == 2000
    ada = Scope(("locus_memory", "users", "ada"))
    assert len(await episodes_of(store, ada)) == len(model.sessions)
    await manager.close()
    await inner.close()


async def test_the_transcript_is_in_the_same_write(tend, either):
    """User and assistant are recorded word for word; tools are not."""
    manager = tend()
    call = ToolCall(id="c", name="read")
    said = [
        *turns_of("Where is the office?"),
        Message.user("And the kitchen?"),
        Message.assistant(tool_calls=[call]),
        Message.tool(ToolResult(tool_call_id="c", name="read", content="floor plan")),
        Message.assistant("On the second floor."),
    ]
    await manager.on_session_end(run_of(said[:2]))
    await manager.on_session_end(run_of(said))
    items = await either.scan(SCOPE.transcript("t"), 10)
    assert [item.value["text"] for item in items] == [
        "Where is the office?",
        "Noted: Where is the office?",
        "And the kitchen?",
        "On the second floor.",
    ]


async def test_passive_memory_off_records_nothing_but_distils(tend, either):
    manager = tend(transcript=False, memory_budget_tokens=0)
    await manager.on_session_end(run_of(turns_of(LONG)))
    await manager.sync_now()
    assert await either.list_keys(SCOPE.transcript("t")) == []
    assert len(await episodes_of(either)) == 1


async def test_messages_are_added_without_a_state(tend, either):
    """Messages, dicts or a text; of a named thread, seen ones are left out."""
    manager = tend()
    said = [{"role": "user", "content": LONG}, {"role": "assistant", "content": "Noted."}]
    assert await manager.add(said, user_id="ada", thread_id="t") == 2
    assert await manager.add([*said, Message.user("More.")], user_id="ada", thread_id="t") == 1
    assert await manager.add(LONG, user_id="ada") == 1
    assert await manager.add([]) == 0
    assert await manager.sync_now() == 0
    episodes = await episodes_of(either, Scope(("locus_memory", "users", "ada")))
    assert [each.turns for each in episodes if each.session_id == "t"] == [(1, 3)]
    assert len(episodes) == 2


async def test_adding_works_without_tending(make, scripted):
    """The facts are extracted at once."""
    extractor = scripted([Memory("user", "home", "The user lives in Graz.")])
    manager = make(extract_fn=extractor)
    assert await manager.add("I live in Graz.", user_id="ada") == 1
    assert [each.key for each in await manager.for_user("ada").retrieve()] == ["home"]


@pytest.mark.parametrize("messages", [[3], [{"role": "nobody"}], {"content": "x"}, 7])
async def test_what_is_no_message_is_refused(tend, messages):
    with pytest.raises(InvalidArgumentError):
        await tend().add(messages)


async def test_a_thread_without_a_name_is_refused(tend):
    with pytest.raises(InvalidKeyError):
        await tend().add("Hi", thread_id="")
