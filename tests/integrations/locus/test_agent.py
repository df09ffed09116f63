"""The checkpointer in the SDK's own agent: turns, crashes, history, forks, sizes."""

from __future__ import annotations

import asyncio
import hashlib
import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from locus.agent import Agent
from locus.core.command import Command
from locus.core.events import InterruptEvent
from locus.core.messages import Message
from locus.core.state import AgentState
from locus.multiagent.graph import StateGraph
from locus.testing import FunctionModel, ScriptedModel, text, tool_call
from locus.tools.decorator import tool

from locus_memory import get_checkpointer, open_backend
from locus_memory.integrations.locus import LocusCheckpointer


def contents(messages):
    return [message.content for message in messages if message.content]


async def test_a_thread_goes_on_in_another_process(make_agent, checkpointers):
    async with checkpointers() as first:
        agent = make_agent(checkpointer=first)
        await agent.arun("one", thread_id="t")
        before = await agent.arun("two", thread_id="t")
    async with checkpointers() as second:
        agent = make_agent(checkpointer=second)
        assert await agent.get_state("t") == before.state
        after = await agent.arun("three", thread_id="t")
        assert contents(agent.model.received_messages[0]) == [
            "Be brief.",
            *("one", "seen place 1", "answer 1"),
            *("two", "seen place 2", "answer 2"),
            "three",
        ]
        assert after.message == "answer 3"
        assert await agent.get_state("t") == after.state


def test_run_sync_again_and_again(make_agent, checkpointers):
    """It closes the checkpointer after each run, and its event loop with it."""
    agent = make_agent(checkpointer=checkpointers())
    answers = [agent.run_sync("go on", thread_id="t").message for _ in range(3)]
    assert answers == ["answer 1", "answer 2", "answer 3"]


@pytest.mark.slow
def test_run_sync_in_several_threads(make_agent, checkpointers):
    """One run's end closes nothing that another one is using."""
    agent = make_agent(checkpointer=checkpointers())

    def chat(number):
        return [agent.run_sync("go on", thread_id=f"t{number}").message for _ in range(3)]

    with ThreadPoolExecutor(4) as pool:
        for answers in pool.map(chat, range(8)):
            assert answers == ["answer 1", "answer 2", "answer 3"]


async def test_many_threads_at_once(make_agent, checkpointers):
    async with checkpointers() as checkpointer:
        agent = make_agent(checkpointer=checkpointer)
        for turn in (1, 2):
            runs = [agent.arun("go on", thread_id=f"t{number}") for number in range(12)]
            assert {run.message for run in await asyncio.gather(*runs)} == {f"answer {turn}"}
        assert len(await checkpointer.list_threads()) == 12


async def test_steps_are_saved_and_only_turns_are_kept(make_agent, checkpointers):
    seen = []

    async with checkpointers() as checkpointer:

        @tool
        async def peek() -> str:
            """Look at what is saved."""
            seen.append(len(await checkpointer.list_checkpoints("t")))
            return "peeked"

        script = [tool_call("peek", call_id="a"), tool_call("peek", call_id="b"), text("done")]
        agent = make_agent(ScriptedModel(script * 2), tools=[peek], checkpointer=checkpointer)
        await agent.arun("one", thread_id="t")
        await agent.arun("two", thread_id="t")
        assert seen == [0, 1, 1, 2]
        assert len(await checkpointer.list_checkpoints("t")) == 2


class Crash(BaseException):
    """What a tool does not answer with."""


@tool
def explode() -> str:
    """Explode."""
    raise Crash


async def test_a_turn_that_crashed_in_a_tool(make_agent, checkpointers):
    script = [tool_call("look", place="here", call_id="a"), tool_call("explode", call_id="b")]
    async with checkpointers() as checkpointer:
        agent = make_agent(ScriptedModel(script), checkpointer=checkpointer)
        agent.add_tool(explode)
        # What the tool raised, or what the SDK makes of having no result.
        with pytest.raises((Crash, AttributeError)):
            await agent.arun("do it", thread_id="t")
    await check_that_it_goes_on(make_agent, checkpointers)


async def test_a_turn_that_was_cancelled_in_a_tool(make_agent, checkpointers):
    waiting = asyncio.Event()

    @tool
    async def wait() -> str:
        """Wait."""
        waiting.set()
        await asyncio.Event().wait()
        return "never"

    script = [tool_call("look", place="here", call_id="a"), tool_call("wait", call_id="b")]
    async with checkpointers() as checkpointer:
        agent = make_agent(ScriptedModel(script), checkpointer=checkpointer)
        agent.add_tool(wait)
        turn = asyncio.create_task(agent.arun("do it", thread_id="t"))
        await waiting.wait()
        turn.cancel()
        with pytest.raises(asyncio.CancelledError):
            await turn
    await check_that_it_goes_on(make_agent, checkpointers)


async def check_that_it_goes_on(make_agent, checkpointers):
    async with checkpointers() as checkpointer:
        agent = make_agent(ScriptedModel(["sorry"]), checkpointer=checkpointer)
        result = await agent.arun("what happened?", thread_id="t")
    assert contents(result.state.messages)[:3] == ["Be brief.", "do it", "seen here"]
    (request,) = agent.model.received_messages
    answered = {message.tool_call_id for message in request if message.role == "tool"}
    assert answered == {call.id for message in request for call in message.tool_calls}


KILLED = """
import asyncio, os, sys
from locus.agent import Agent
from locus.testing import ScriptedModel, tool_call
from locus.tools.decorator import tool
from locus_memory.integrations.locus import LocusCheckpointer

@tool
def pay(amount: int) -> str:
    "Pay."
    return f"paid {amount}"

@tool
def die() -> str:
    "Die."
    os._exit(9)

script = [tool_call("pay", amount=5, call_id="a"), tool_call("die", call_id="b")]
agent = Agent(
    model=ScriptedModel(script), tools=[pay, die], checkpointer=LocusCheckpointer(sys.argv[1])
)
asyncio.run(agent.arun("pay, then die", thread_id="t"))
"""


@pytest.mark.slow
async def test_a_turn_whose_process_was_killed(tmp_path, make_agent):
    where = f"sqlite:{tmp_path}/agent.db"
    command = [sys.executable, "-c", KILLED, where]
    killed = await asyncio.to_thread(
        subprocess.run, command, check=False, capture_output=True, timeout=120
    )
    assert killed.returncode == 9, killed.stderr
    async with LocusCheckpointer(where) as checkpointer:
        agent = make_agent(ScriptedModel(["paid before"]), tools=[], checkpointer=checkpointer)
        events = [event async for event in agent.continue_turn("t")]
        assert events
        state = await agent.get_state("t")
        assert [execution.result for execution in state.tool_executions] == ["paid 5"]
        assert contents(state.messages)[-2:] == ["paid 5", "paid before"]
        assert len(await checkpointer.list_checkpoints("t")) == 1


async def test_a_question_is_answered_in_another_process(make_agent, checkpointers):
    async with checkpointers() as checkpointer:
        script = [tool_call("ask_user", question="Which?", call_id="ask")]
        agent = make_agent(
            ScriptedModel(script), checkpointer=checkpointer, completion_mode="explicit"
        )
        events = [event async for event in agent.run("choose", thread_id="t")]
        assert any(isinstance(event, InterruptEvent) for event in events)
    async with checkpointers() as checkpointer:
        script = [tool_call("task_complete", summary="took B", call_id="end")]
        agent = make_agent(
            ScriptedModel(script), checkpointer=checkpointer, completion_mode="explicit"
        )
        assert [event async for event in agent.resume("B", thread_id="t")]
        messages = (await agent.get_state("t")).messages
        assert [m.content for m in messages if m.tool_call_id == "ask"] == ["B"]


async def test_history_edits_and_forks_of_the_sdk(make_agent, checkpointers):
    async with checkpointers() as checkpointer:
        agent = make_agent(checkpointer=checkpointer)
        for prompt in ("one", "two", "three"):
            await agent.arun(prompt, thread_id="t")
        history = await agent.get_state_history("t")
        assert [len(state.messages) for _, state in history] == [13, 9, 5]
        oldest, state = history[-1]
        assert await agent.get_state("t", oldest) == state
        assert await agent.fork("t", oldest, new_thread_id="f") == "f"
        forked = await agent.arun("other", thread_id="f")
        assert contents(forked.state.messages)[1:5] == ["one", "seen place 1", "answer 1", "other"]
        assert contents((await agent.get_state("t")).messages)[-1] == "answer 3"
        note = Message.system("by hand")
        edited = await agent.update_state("t", messages=[note], metadata={"n": 1})
        assert (await agent.get_state("t", edited)).messages[-1] == note
        assert (await checkpointer.get_metadata("t", edited))["source"] == "update_state"
        assert (await checkpointer.query_by_metadata("forked_from", "t"))[0]["thread_id"] == "f"


async def test_a_fork_of_ours_has_its_history(make_agent, checkpointers):
    async with checkpointers() as checkpointer:
        agent = make_agent(checkpointer=checkpointer)
        for prompt in ("one", "two", "three"):
            await agent.arun(prompt, thread_id="t")
        middle = (await checkpointer.list_checkpoints("t"))[1]
        await checkpointer.checkpointer.fork("t", middle, "f")
        await agent.arun("other", thread_id="f")
        sizes = [len(state.messages) for _, state in await agent.get_state_history("f")]
        assert sizes == [13, 9, 5]
        infos = await checkpointer.checkpointer.list_with_metadata("f", 10)
        assert [info.checkpoint_id for info in infos][1] == middle


def prose(seed, words):
    """Return words that compress as little as names and numbers do."""
    digest = hashlib.shake_128(str(seed).encode()).hexdigest(words * 3)
    return " ".join(digest[start : start + 6] for start in range(0, len(digest), 6))


async def take_turns(make_agent, count):
    """Take turns with a tool call each; assert that all are kept in less room than the last."""

    @tool
    def fetch(number: int) -> str:
        """Fetch."""
        return prose(number, 40)

    def answer(messages, tools):
        number = len(messages)
        if messages[-1].role == "tool":
            return prose(-number, 30)
        return tool_call("fetch", number=number, call_id=f"call-{number}")

    async with LocusCheckpointer("memory") as checkpointer:
        agent = make_agent(answer, tools=[fetch], checkpointer=checkpointer)
        for number in range(count):
            await agent.arun(prose(f"q{number}", 10), thread_id="t")
        state = await agent.get_state("t")
        stats = await checkpointer.checkpointer.get_storage_stats("t")
        history = await agent.get_state_history("t", limit=count)
    assert len(state.messages) == 4 * count + 1
    assert [len(each.messages) for _, each in history] == list(range(4 * count + 1, 1, -4))
    assert stats["compressed_size"] < len(json.dumps(state.to_checkpoint()))


@pytest.mark.slow
async def test_turns_cost_less_than_their_last_state(make_agent):
    """The SDK's own checkpointers write it once a turn. Two hundred turns are in `integration/`."""
    await take_turns(make_agent, 40)


async def test_a_graph_of_the_sdk(checkpointers):
    async with checkpointers() as checkpointer:
        graph = StateGraph()
        graph.add_node("ask", lambda state: {"question": "?"})
        graph.add_node("answer", lambda state: {"answer": f"{state['question']}!"})
        graph.add_edge("ask", "answer")
        graph.set_entry_point("ask")
        graph.set_finish_point("answer")
        graph = graph.compile(checkpointer=checkpointer, interrupt_before=["answer"])
        graph.config.thread_id = "g"
        paused = await graph.execute({"n": 1})
        assert paused.final_state.get("answer") is None
        assert (await graph.aget_state("g"))["question"] == "?"
        done = await graph.execute(Command(resume=True))
        assert done.final_state["answer"] == "?!"
        history = await graph.aget_state_history("g")
        forked = await graph.afork("g", history[-1][0], new_thread_id="h")
        assert (await graph.aget_state(forked)) == history[-1][1]


async def test_ours_as_it_is(make_agent):
    """Without the adapter: a state type of the SDK is all that it takes."""
    async with get_checkpointer("memory", state_type=AgentState) as checkpointer:
        agent = make_agent(checkpointer=checkpointer)
        await agent.arun("one", thread_id="t")
        result = await agent.arun("two", thread_id="t")
        assert result.message == "answer 2"
        assert await agent.get_state("t") == result.state
        assert len(await agent.get_state_history("t")) == 2
        assert await agent.fork("t", new_thread_id="f") == "f"


def test_a_backends_checkpointer_as_it_is(tmp_path, make_agent):
    """Closing it, as `run_sync` does, closes nothing of the backend."""
    backend = open_backend(f"sqlite:{tmp_path}/agent.db", state_type=AgentState)
    agent = make_agent(checkpointer=backend.checkpointer)
    assert [agent.run_sync("go", thread_id="t").message for _ in range(2)][-1] == "answer 2"
    asyncio.run(backend.close())


async def test_an_agent_that_streams_tokens(checkpointers, make_agent):
    async with checkpointers() as checkpointer:
        agent = make_agent(checkpointer=checkpointer)
        for _ in range(2):
            async for _ in agent.run("go on", thread_id="t", stream_tokens=True):
                pass
        assert contents((await agent.get_state("t")).messages)[-1] == "answer 2"


async def test_an_agent_with_a_state_from_before(make_agent):
    """A thread of the SDK's own checkpointer is moved by loading and saving it."""
    from locus.memory.backends.memory import MemoryCheckpointer  # noqa: PLC0415 - as a user would

    old = MemoryCheckpointer()
    await make_agent(checkpointer=old).arun("one", thread_id="t")
    async with LocusCheckpointer("memory") as checkpointer:
        await checkpointer.save(await old.load("t"), "t")
        agent = Agent(model=FunctionModel(lambda *_: "hello"), checkpointer=checkpointer)
        result = await agent.arun("two", thread_id="t")
        assert contents(result.state.messages)[1:] == [
            *("one", "seen place 1", "answer 1", "two", "hello")
        ]
