"""What people do while a session waits or is distilled: forget, undo, restate, let expire."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from locus_memory.agent import memory_tool
from locus_memory.backends.inmemory.store import InMemoryStore
from locus_memory.memory.extraction.extractors import LLMExtractor
from locus_memory.memory.forgetting.forget import forget
from locus_memory.memory.manager import LLMMemoryManager
from locus_memory.memory.models import Memory, MemoryType
from locus_memory.memory.options import ExtractMode
from locus_memory.memory.providers.base import BaseMemoryProvider
from locus_memory.messages import Message, ToolCall
from locus_memory.state import AgentState
from locus_memory.store.base import BaseStore
from locus_memory.store.wrappers import StoreWrapper
from locus_memory.testing import FakeClock
from tests.memory.conftest import PlainStore

ILL = "I have diabetes since I was a child, and I take insulin every day, as my mother does."
ANSWER = {
    "changes": [{"op": "add", "type": "user", "key": "illness", "content": "Ada has diabetes."}],
    "notes": ["Ada told that she has diabetes."],
}


async def end(manager: LLMMemoryManager, thread: str, *texts: str) -> None:
    """End a run of a thread in which the user said these texts."""
    messages = [m for text in texts for m in (Message.user(text), Message.assistant("Noted."))]
    await manager.on_session_end(AgentState(run_id=thread, messages=tuple(messages)))


async def contents(manager: LLMMemoryManager) -> list[str]:
    """Return the contents of the current memories."""
    return [each.content async for each in manager.memories()]


class Slow:
    """A model that answers once it may."""

    def __init__(self, answer: str) -> None:
        self.answer = answer
        self.answers: list[str] = []
        self.asked: list[str] = []
        self.began, self.may = asyncio.Event(), asyncio.Event()

    async def __call__(self, messages: Any) -> Message:
        self.asked.append(messages[-1].content)
        self.began.set()
        await self.may.wait()
        return Message.assistant(self.answers.pop() if self.answers else self.answer)


WAYS: list[ExtractMode] = ["session_end", "manual"]


def talking(store: BaseStore, model: Slow, mode: ExtractMode) -> LLMMemoryManager:
    """Return a manager that extracts later, once it is told."""
    return LLMMemoryManager(store, extract_fn=LLMExtractor(model), extract_mode=mode)


@pytest.mark.parametrize("mode", WAYS)
@pytest.mark.parametrize("is_plain", [False, True])
async def test_a_user_who_is_forgotten_during_the_call_stays_forgotten(
    mode: ExtractMode,
    is_plain: bool,  # noqa: FBT001 - a parameter of a test
) -> None:
    """The answer of the model arrives after the erasure, and nothing of it is written."""
    model, inner = Slow(json.dumps(ANSWER)), InMemoryStore()
    store = PlainStore(inner) if is_plain else inner
    async with talking(store, model, mode) as manager, talking(store, model, mode) as other:
        ada = manager.for_user("ada")
        await end(ada, "t", ILL)
        # Another process than the one that queued the turn, which knows no cursor.
        distilling = asyncio.create_task(other.for_user("ada").sync_now())
        await model.began.wait()
        await forget(inner, user_id="ada")
        model.may.set()
        assert await distilling == 0
        assert await inner.list_namespaces(("locus_memory", "users"), 50) == []


@pytest.mark.parametrize("mode", WAYS)
async def test_a_turn_that_is_erased_during_the_call_tells_nothing(
    mode: ExtractMode,
) -> None:
    """It is not the first one of its session, and the others are asked about again."""
    model, store = Slow(json.dumps(ANSWER)), InMemoryStore()
    async with talking(store, model, mode) as manager:
        rain = (
            "It rained the whole day in Graz, so we stayed in and played cards until the evening."
        )
        told = Memory(MemoryType.USER, "ill", "Ada has diabetes.", SOURCE)
        await end(manager, "t", rain)
        await end(manager, "t", rain, ILL)
        await manager.save(told)
        distilling = asyncio.create_task(manager.sync_now())
        await model.began.wait()
        await forget(store, key="ill")
        model.answer = json.dumps({"changes": [], "notes": ["It rained in Graz."]})
        asked = model.asked[0]
        model.asked.clear()
        model.answers.append(json.dumps(ANSWER))
        model.may.set()
        assert await distilling == 0
        assert "diabetes" in asked
        assert ["diabetes" in each for each in model.asked] == [False]
        assert await contents(manager) == []
        episodes = await manager.episodes()
        assert [each.text for each in episodes] == ["It rained in Graz."]


SOURCE = {"thread_id": "t", "message_ids": ["#3"]}


async def test_an_undo_between_a_turn_and_the_end_of_its_session_holds() -> None:
    """Rules extract from a turn at once, and the end of the session does not repeat it."""
    clock = FakeClock()
    async with LLMMemoryManager("memory", extract_mode="session_end", clock=clock) as manager:
        await end(manager, "t", "I live in Graz.")
        clock.advance(5)
        await end(manager, "t", "I live in Graz.", "I live in Vienna.")
        assert await contents(manager) == ["The user lives in Vienna."]
        await manager.undo("home")
        clock.advance(100)
        assert await manager.sync_now() == 0
        assert await contents(manager) == ["The user lives in Graz."]


async def test_an_expired_rule_or_home_is_not_shown() -> None:
    """Neither what always holds nor who the user is shows what has ended."""
    past = (datetime.now(UTC) - timedelta(days=1)).isoformat()
    async with LLMMemoryManager("memory", extract_mode="session_end") as manager:
        ended = {"expires_at": past}
        await manager.save(
            [
                Memory(MemoryType.FEEDBACK, "language", "Always answer in French.", ended),
                Memory(MemoryType.USER, "room", "The user is in room 12 in Graz.", ended),
            ]
        )
        for text in ("What is 17 times 23?", "Where do I live?", "Which room am I in?"):
            assert (await manager.plan(text)).block is None


async def test_a_fact_that_is_said_again_after_its_end_holds_again() -> None:
    """Under its own key, and under another one."""
    past = (datetime.now(UTC) - timedelta(days=1)).isoformat()
    for key in ("hotel", "other"):
        async with LLMMemoryManager("memory") as manager:
            stay = "The user stays at hotel Sacher."
            await manager.save(Memory(MemoryType.USER, "hotel", stay, {"expires_at": past}))
            assert await contents(manager) == []
            await manager.save(Memory(MemoryType.USER, key, stay))
            assert await contents(manager) == [stay]


async def test_the_end_of_an_expired_memory_can_be_moved() -> None:
    """`update` and `delete` reach it, and `get` does not show it."""
    now = datetime.now(UTC)
    async with LLMMemoryManager("memory") as manager:
        ended = {"expires_at": (now - timedelta(days=1)).isoformat()}
        (room,) = await manager.save(Memory(MemoryType.USER, "room", "Room 12.", ended))
        assert await manager.get(room.id) is None
        assert await manager.update(room.id, expires_at=now + timedelta(days=1)) is not None
        assert await manager.get(room.id) is not None


class Bank(BaseMemoryProvider):
    """A provider of several users that records what it gets."""

    def __init__(self, user: str = "nobody", log: list[str] | None = None) -> None:
        self.user = user
        self.log = [] if log is None else log

    def for_user(self, user_id: str) -> Bank:
        return Bank(user_id, self.log)

    async def remember(self, content: str) -> str:
        self.log.append(f"{self.user} remember {content}")
        return "1"

    async def on_memory_write(self, action: str, target: str, content: str) -> None:
        self.log.append(f"{self.user} {action} {content}")


async def test_a_write_of_a_tool_is_mirrored_to_its_own_user() -> None:
    """The hook is that of the bound provider, and a secret reaches nobody."""
    bank = Bank()
    tool = memory_tool(bank, user_id="bob")

    async def remember(content: str) -> str:
        arguments = {"action": "remember", "content": content}
        result = await tool.run(ToolCall(name="memory", arguments=arguments))
        return str(result.error or result.content)

    assert await remember("Bob likes tea.") == "remembered as 1"
    assert bank.log == ["bob remember Bob likes tea."] * 2
    assert "looks like a secret" in await remember("My password is Tr0ub4dor&3xyz99")
    assert "1 to 2,000 characters" in await remember("x" * 2_001)
    forget_it = ToolCall(name="memory", arguments={"action": "forget", "memory_id": "1"})
    assert "refused" in str((await tool.run(forget_it)).content)
    assert len(bank.log) == 2


@pytest.mark.parametrize("layer", ["vitals", "blocks"])
async def test_what_a_run_writes_leaves_nothing_of_an_erased_user(layer: str) -> None:
    """It is written after the erasure, and takes itself back."""
    may, began = asyncio.Event(), asyncio.Event()

    class Held(StoreWrapper):
        async def put_batch(self, items: Any) -> Any:
            listed = list(items)
            if any(put.namespace[-1] == layer for put in listed):
                began.set()
                await may.wait()
            return await self.inner.put_batch(listed)

    store = InMemoryStore()
    # The illness has no room in the stable part: a use of it is counted.
    notes = [
        Memory(MemoryType.PROJECT, f"n{n}", f"Note number {n}.", {"importance": 0.9})
        for n in range(40)
    ]
    async with LLMMemoryManager(Held(store), memory_budget_tokens=200) as manager:
        ada = manager.for_user("ada")
        for each in (Memory(MemoryType.USER, "illness", "Ada has diabetes."), *notes):
            await ada.save(each)
        asked = (Message.user("Do I have diabetes?"),)
        run = asyncio.create_task(ada.on_session_start(AgentState(run_id="t", messages=asked)))
        async with asyncio.timeout(10):
            await began.wait()
        await forget(store, user_id="ada")
        may.set()
        await run
        await manager.drain()
        assert await store.list_namespaces((), 50) == []
