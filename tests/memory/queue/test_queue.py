from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import textwrap

import pytest

from locus_memory.backends.sqlite.store import SQLiteStore
from locus_memory.errors import BackendUnavailableError
from locus_memory.memory.extraction.extractors import LLMExtractor
from locus_memory.memory.manager import LLMMemoryManager
from locus_memory.memory.models import Memory, MemoryType
from locus_memory.messages import Message, ToolCall, ToolResult
from locus_memory.state import AgentState
from locus_memory.testing.model import FakeModel
from tests.memory.conftest import new_of

QUEUE = ("locus_memory", "queue")


def fact(key, content):
    return Memory(MemoryType.USER, key, content)


def conversation(*texts):
    roles = (Message.user, Message.assistant)
    return tuple(roles[n % 2](text) for n, text in enumerate(texts))


def run_of(messages, thread="t", **metadata):
    return AgentState(messages=tuple(messages), metadata={"thread_id": thread, **metadata})


async def waiting(store):
    return len(await store.list_keys(QUEUE))


class Gate:
    """An extractor that waits until it is let through."""

    name = "gate"

    def __init__(self):
        self.open = asyncio.Event()
        self.entered = asyncio.Event()
        self.calls = []

    async def extract(self, messages, memories):
        self.calls.append([message.content for message in new_of(messages)])
        self.entered.set()
        await self.open.wait()
        return [fact(messages[0].content, f"Said {messages[0].content}")]


async def test_each_message_is_extracted_from_once(make, store, scripted):
    extractor = scripted()
    manager = make(extract_fn=extractor)
    for count in (2, 2, 4, 4, 6):
        texts = [f"text {n}" for n in range(count)]
        await manager.on_session_end(run_of([Message.system("Help."), *conversation(*texts)]))
    assert extractor.texts == [["text 0", "text 1"], ["text 2", "text 3"], ["text 4", "text 5"]]
    assert await waiting(store) == 0


async def test_what_waits_for_a_model_is_not_read_by_the_phrases_of_another_process(
    make, store, scripted
):
    """Such a process is a tool, a server or a hook on the same database."""
    extractor = scripted()
    first = make(extract_fn=extractor, extract_mode="manual")
    await first.on_session_end(run_of(conversation("I live in Vienna.", "Noted."), user_id="ada"))
    assert await waiting(store) == 1
    plain = make(extract_fn=None)
    await plain.open()
    assert await plain.drain() == 0
    said = conversation("I live in Vienna.", "Noted.", "My name is Ada.", "Hello.")
    await plain.on_session_end(run_of(said, user_id="ada"))
    assert await plain.drain() == 0
    facts = [each.content async for each in plain.for_user("ada").memories()]
    assert not [each for each in facts if "Vienna" in each]
    assert [each for each in facts if "Ada" in each]
    assert await waiting(store) == 1
    assert await first.for_user("ada").sync_now() == 0
    assert extractor.texts == [["I live in Vienna.", "Noted."]]
    assert await waiting(store) == 0


async def test_phrases_leave_alone_what_a_model_is_reading(make, store):
    """The model reads all that waits of a thread, and is asked once."""
    asked, answer = asyncio.Event(), asyncio.Event()
    texts = []

    async def extractor(messages):
        texts.append([each.content for each in messages])
        asked.set()
        await answer.wait()
        return []

    first = make(extract_fn=extractor, extract_mode="manual")
    said = conversation("I live in Vienna.", "Noted.")
    await first.on_session_end(run_of(said, user_id="ada"))
    said = [*said, *conversation("My name is Ada.", "Hello.")]
    await make(extract_fn=None, extract_mode="manual").on_session_end(run_of(said, user_id="ada"))
    assert await waiting(store) == 2
    reading = asyncio.create_task(first.for_user("ada").sync_now())
    await asked.wait()
    plain = make(extract_fn=None)
    assert await plain.drain() == 1
    answer.set()
    assert await reading == 0
    assert texts == [["I live in Vienna.", "Noted.", "My name is Ada.", "Hello."]]
    assert await waiting(store) == 0


async def test_phrases_read_what_waits_for_a_model_when_somebody_asks_for_it(make, store, scripted):
    extractor = scripted()
    first = make(extract_fn=extractor, extract_mode="manual")
    for user in ("ada", "bob"):
        said = conversation("I live in Vienna.", "Noted.")
        await first.on_session_end(run_of(said, user_id=user))
    plain = make(extract_fn=None)
    assert await plain.for_user("ada").sync_now() == 0
    assert await waiting(store) == 1
    # What nobody asked for is not pending here.
    assert plain.pending == 0
    facts = [each.content async for each in plain.for_user("ada").memories()]
    assert [each for each in facts if "Vienna" in each]
    assert not [each async for each in plain.for_user("bob").memories()]


async def test_a_memory_without_sources_names_the_last_fifty_messages(make, scripted):
    manager = make(extract_fn=scripted([Memory(MemoryType.USER, "pet", "Has a cat")]))
    said = tuple(Message.user(f"I saw bird number {n}.") for n in range(60))
    await manager.on_session_end(AgentState(messages=said, metadata={"thread_id": "t"}))
    (memory,) = await manager.retrieve()
    assert memory.metadata["message_ids"] == [f"#{n}" for n in range(11, 61)]


async def test_nothing_new_costs_no_call_and_no_write(make, store, scripted):
    extractor = scripted()
    manager = make(extract_fn=extractor)
    state = run_of(conversation("Hi", "Ho"))
    await manager.on_session_end(state)
    before = await store.get_item(("locus_memory", "cursors"), "t")
    call = ToolCall(id="c", name="clock")
    answer = ToolResult(tool_call_id="c", name="clock", content="noon")
    called = [Message.assistant(tool_calls=[call]), Message.tool(answer)]
    await manager.on_session_end(state.with_messages(called))
    assert len(extractor.calls) == 1
    assert await store.get_item(("locus_memory", "cursors"), "t") == before
    await manager.on_session_end(state.with_messages([*called, Message.assistant("It is noon")]))
    assert extractor.texts[1] == ["", "noon", "It is noon"]
    assert extractor.calls[1][0][0].tool_calls[0].name == "clock"


@pytest.mark.parametrize("kept", [6, 4, 3, 2])
async def test_messages_trimmed_away_do_not_hide_what_is_new(make, scripted, kept):
    extractor = scripted((), [fact("new", "New")])
    manager = make(extract_fn=extractor)
    texts = [f"text {n}" for n in range(8)]
    await manager.on_session_end(run_of(conversation(*texts)))
    rest = conversation(*texts)[-kept:]
    await manager.on_session_end(run_of([*rest, *conversation("new", "Noted")]))
    assert extractor.texts[1] == ["new", "Noted"]
    (memory,) = await manager.retrieve()
    assert memory.metadata["message_ids"] == ["#9"]


async def test_an_answer_given_before_hides_nothing(make, scripted):
    extractor = scripted()
    manager = make(extract_fn=extractor)
    await manager.on_session_end(run_of(conversation("I like tea", "Noted.", "yes", "Noted.")))
    await manager.on_session_end(run_of(conversation("I moved to Oslo", "Noted.")))
    assert extractor.texts[1] == ["I moved to Oslo", "Noted."]


async def test_an_edited_message_is_read_again(make, scripted):
    extractor = scripted()
    manager = make(extract_fn=extractor)
    await manager.on_session_end(run_of(conversation("one", "two", "three", "four")))
    await manager.on_session_end(run_of(conversation("one", "two", "three", "5", "six")))
    assert extractor.texts[1] == ["5", "six"]


async def test_threads_do_not_share_a_cursor(make, scripted):
    extractor = scripted()
    manager = make(extract_fn=extractor)
    for thread in ("a", "a/b", "users"):
        await manager.on_session_end(run_of(conversation("Hi", "Ho"), thread))
    await manager.on_session_end(AgentState(run_id="r", messages=conversation("Hi", "Ho")))
    assert len(extractor.calls) == 4


async def test_in_the_background_the_run_does_not_wait(make, store):
    gate = Gate()
    manager = make(extract_fn=gate, extract_mode="background")
    await manager.on_session_end(run_of(conversation("Hi", "Ho")))
    await gate.entered.wait()
    assert manager.pending == 1
    assert await waiting(store) == 1
    gate.open.set()
    assert await manager.drain() == 0
    assert (manager.pending, await waiting(store)) == (0, 0)
    assert [memory.content for memory in await manager.retrieve()] == ["Said Hi"]


async def test_what_waits_of_a_thread_goes_into_one_prompt_in_order(make):
    gate = Gate()
    manager = make(extract_fn=gate, extract_mode="background")
    for count in (2, 4, 6):
        texts = [f"text {n}" for n in range(count)]
        await manager.on_session_end(run_of(conversation(*texts)))
        await gate.entered.wait()
    gate.open.set()
    await manager.drain()
    assert gate.calls == [["text 0", "text 1"], [f"text {n}" for n in range(2, 6)]]


async def test_several_threads_are_handled_at_once_but_not_all(make):
    gate = Gate()
    manager = make(extract_fn=gate, extract_mode="background")
    for number in range(8):
        await manager.on_session_end(run_of(conversation(f"n{number}", "Ok"), f"t{number}"))
    for _ in range(200):
        await asyncio.sleep(0)
    await gate.entered.wait()
    assert 1 <= len(gate.calls) <= 4
    gate.open.set()
    assert await manager.drain() == 0
    assert len(gate.calls) == 8


async def test_a_failure_is_tried_again_with_the_next_run(make, store, scripted, events):
    extractor = scripted(RuntimeError("no model"))
    manager = make(extract_fn=extractor)
    await manager.on_session_end(run_of(conversation("one", "two")))
    assert (manager.pending, await waiting(store)) == (1, 1)
    (failed,) = events.of("memory.extract_failed")
    assert failed.attributes == {"thread": "t", "attempts": 1}
    await manager.on_session_end(run_of(conversation("one", "two", "three", "four")))
    assert extractor.texts[1] == ["one", "two", "three", "four"]
    assert (manager.pending, await waiting(store)) == (0, 0)


async def test_what_fails_is_tried_again_once_another_thread_works(make):
    works, read = False, []

    async def extractor(messages, memories):
        if not works:
            raise RuntimeError("no model")
        read.append(messages[0].content)
        return ()

    manager = make(extract_fn=extractor, extract_mode="background")
    await manager.on_session_end(run_of(conversation("one", "two"), "a"))
    await manager.drain()
    assert manager.pending == 1
    works = True
    await manager.on_session_end(run_of(conversation("three", "four"), "b"))
    assert await manager.drain() == 0
    assert sorted(read) == ["one", "three"]


async def test_what_fails_for_ever_is_dropped_with_an_event(
    make, store, scripted, events, monkeypatch
):
    monkeypatch.setattr("locus_memory.memory.queue.worker._MOST_ATTEMPTS", 3)
    manager = make(extract_fn=scripted(*[RuntimeError("never")] * 9))
    await manager.on_session_end(run_of(conversation("one", "two")))
    assert await manager.drain() == 1
    assert await manager.drain() == 0
    (dropped,) = events.of("memory.extract_dropped")
    assert dropped.attributes == {
        "thread": "t",
        "messages": 2,
        "message_ids": ["#1", "#2"],
        "attempts": 3,
    }
    assert isinstance(dropped.error, RuntimeError)
    assert await waiting(store) == 0


async def test_a_later_message_outlives_an_earlier_one_that_is_dropped(
    make, scripted, events, monkeypatch
):
    monkeypatch.setattr("locus_memory.memory.queue.worker._MOST_ATTEMPTS", 3)
    extractor = scripted(*[RuntimeError("never")] * 3)
    manager = make(extract_fn=extractor)
    for count in (2, 4, 6, 8):
        texts = [f"text {n}" for n in range(count)]
        await manager.on_session_end(run_of(conversation(*texts)))
    assert len(events.of("memory.extract_dropped")) == 1
    assert extractor.texts[-1] == [f"text {n}" for n in range(2, 8)]


async def test_an_answer_that_nobody_can_read_stays_queued_until_it_is_given_up(
    make, store, events, monkeypatch
):
    monkeypatch.setattr("locus_memory.memory.queue.worker._MOST_ATTEMPTS", 2)
    good = '{"changes": [{"op": "add", "type": "user", "key": "pet", "content": "A cat."}]}'
    asked = FakeModel(["No.", "No.", "Sorry.", "No.", good])
    manager = make(extract_fn=LLMExtractor(asked))
    await manager.on_session_end(run_of(conversation("My cat.", "Nice.")))
    assert (manager.pending, await waiting(store)) == (1, 1)
    await manager.drain()
    assert (manager.pending, await waiting(store)) == (0, 0)
    (dropped,) = events.of("memory.extract_dropped")
    assert (dropped.attributes["thread"], dropped.attributes["message_ids"]) == ("t", ["#1", "#2"])
    # The thread goes on.
    texts = ["My cat.", "Nice.", "I have a cat.", "Noted."]
    await manager.on_session_end(run_of(conversation(*texts)))
    assert [each.key for each in await manager.retrieve()] == ["pet"]
    assert "I have a cat." in asked.calls[-1][1].content
    assert "My cat." not in asked.calls[-1][1].content


async def test_an_extractor_that_never_returns_is_given_up(make, events):
    gate = Gate()
    manager = make(extract_fn=gate, extract_timeout=0.3)
    await manager.on_session_end(run_of(conversation("one", "two")))
    (failed,) = events.of("memory.extract_failed")
    assert isinstance(failed.error, TimeoutError)
    gate.open.set()
    assert await manager.drain() == 0


async def test_closing_leaves_in_the_store_what_takes_too_long(make, store, scripted, events):
    gate = Gate()
    manager = make(extract_fn=gate, extract_mode="background", drain_timeout=0.01)
    await manager.on_session_end(run_of(conversation("one", "two")))
    await gate.entered.wait()
    await manager.close()
    assert "memory.drain_timeout" in events.names
    assert await waiting(store) == 1
    other = scripted()
    assert await make(extract_fn=other).drain() == 0
    assert other.texts == [["one", "two"]]
    assert len(asyncio.all_tasks()) == 1


async def test_a_cancelled_run_does_not_cancel_the_extraction(make, store):
    gate = Gate()
    manager = make(extract_fn=gate)
    run = asyncio.create_task(manager.on_session_end(run_of(conversation("one", "two"))))
    await gate.entered.wait()
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    gate.open.set()
    assert await manager.drain() == 0
    assert len(await manager.retrieve()) == 1


async def test_two_managers_never_do_the_same_job_at_once(make, store):
    gate, second = Gate(), Gate()
    one = make(extract_fn=gate, extract_mode="background")
    other = make(extract_fn=second, extract_mode="background")
    await one.on_session_end(run_of(conversation("one", "two")))
    await gate.entered.wait()
    assert await other.drain() == 1
    assert second.calls == []
    gate.open.set()
    assert await one.drain() == 0
    assert await other.drain() == 0
    assert second.calls == []


async def test_two_managers_queue_a_message_once(make, scripted):
    extractor = scripted()
    one, other = make(extract_fn=extractor), make(extract_fn=extractor)
    state = run_of(conversation("one", "two"))
    await asyncio.gather(*(m.on_session_end(state) for m in (one, other) for _ in range(4)))
    await one.drain()
    assert extractor.texts == [["one", "two"]]


async def test_a_store_that_comes_back_is_caught_up_with(failing_store, make, scripted, events):
    extractor = scripted()
    manager = make(store=failing_store, extract_fn=extractor, extract_mode="background")
    failing_store.failing.add("scan")
    await manager.on_session_end(run_of(conversation("one", "two")))
    await manager.drain()
    assert isinstance(events.of("memory.queue_failed")[0].error, BackendUnavailableError)
    assert manager.pending == 1
    failing_store.failing.clear()
    assert await manager.drain() == 0
    assert extractor.texts == [["one", "two"]]


async def test_half_characters_are_survived(make, scripted):
    extractor = scripted()
    manager = make(extract_fn=extractor)
    await manager.on_session_end(run_of(conversation("half \ud83d of it", "nul \x00")))
    assert extractor.texts == [["half ? of it", "nul \x00"]]


def test_a_manager_outlives_its_event_loop(tmp_path, scripted):
    store = SQLiteStore(tmp_path / "memory.db")
    gate = Gate()
    manager = LLMMemoryManager(store, extract_fn=gate, extract_mode="background")

    async def first():
        await manager.on_session_end(run_of(conversation("one", "two")))
        await gate.entered.wait()

    async def second():
        gate.open = asyncio.Event()
        state = await manager.on_session_start(run_of(conversation("Hi")))
        assert len(state.messages) == 1
        gate.open.set()
        assert await manager.drain() == 0
        assert [memory.content for memory in await manager.retrieve()] == ["Said one"]
        await manager.close()
        await store.close()

    asyncio.run(first())
    asyncio.run(second())
    assert gate.calls == [["one", "two"]] * 2


CHILD = """
import asyncio, sys
from locus_memory.memory.manager import LLMMemoryManager
from locus_memory.messages import Message
from locus_memory.state import AgentState

class Stuck:
    name = "stuck"
    async def extract(self, messages, memories):
        print("extracting", flush=True)
        await asyncio.sleep(600)

async def main():
    manager = LLMMemoryManager(sys.argv[1], extract_fn=Stuck(), extract_mode="background")
    messages = (Message.user("I live in Oslo"), Message.assistant("Noted"))
    metadata = {"thread_id": "t", "user_id": "ana"}
    await manager.on_session_end(AgentState(messages=messages, metadata=metadata))
    print("ended", flush=True)
    await asyncio.sleep(600)

asyncio.run(main())
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="the platform has no SIGKILL")
def test_what_a_killed_process_left_is_done_at_the_next_start(tmp_path, scripted):
    where = f"sqlite:{tmp_path / 'memory.db'}"
    command = [sys.executable, "-c", textwrap.dedent(CHILD), where]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        lines = {child.stdout.readline().strip(), child.stdout.readline().strip()}
        child.kill()
    assert lines == {"ended", "extracting"}
    extractor = scripted([fact("city", "Lives in Oslo")])

    async def next_start():
        async with LLMMemoryManager(where, extract_fn=extractor) as manager:
            assert await manager.drain() == 0
            return await manager.for_user("ana").retrieve()

    (memory,) = asyncio.run(next_start())
    assert memory.content == "Lives in Oslo"
    assert memory.metadata["thread_id"] == "t"
    assert extractor.texts == [["I live in Oslo", "Noted"]]
