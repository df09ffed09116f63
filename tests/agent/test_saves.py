from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from locus_memory.agent.loop import (
    Agent,
)
from locus_memory.checkpoint.chain import DeltaCheckpointer
from locus_memory.conversation.validation import validate
from locus_memory.errors import (
    CheckpointConflictError,
    CheckpointNotFoundError,
)
from locus_memory.messages import Message, Role, ToolCall
from locus_memory.state import AgentState
from locus_memory.store.json_values import encode_json
from locus_memory.testing.model import FakeModel

BACKENDS = ["memory", "file:threads", "sqlite:agent.db"]


@asynccontextmanager
async def agent_of(*answers, **options):
    async with Agent(FakeModel(answers), **options) as agent:
        yield agent


def calls(*names, **arguments):
    """Return an answer that calls tools; each call's id is the tool's name."""
    return Message.assistant(
        tool_calls=[ToolCall(id=f"c-{name}", name=name, arguments=arguments) for name in names]
    )


def shape(state):
    """Return who said what, a line a message."""
    return [
        (m.role.value, m.content or " ".join(c.name for c in m.tool_calls)) for m in state.messages
    ]


def add(a: int, b: int) -> int:
    """Add."""
    return a + b


class Listener:
    """A memory manager that only takes note of what has ended."""

    def __init__(self):
        self.ended = []

    def on_session_start(self, state):
        return state

    def on_session_end(self, state):
        self.ended.append(state)


class TestSaves:
    async def test_every_step_is_saved(self, checkpointer):
        answers = [calls("add", "add2", a=1, b=2), "Three."]

        async def add2(a: int, b: int):
            return a + b

        async with agent_of(*answers, checkpointer=checkpointer, tools=[add, add2]) as agent:
            await agent.run("Add", "t")
            saved = await agent.history("t")
            kinds = [info.metadata["kind"] for info in reversed(saved)]
            assert kinds == ["user", "assistant", "tool", "tool", "assistant", "done"]
            for count, info in enumerate(reversed(saved[1:]), 1):
                state = await agent.state("t", info.checkpoint_id)
                assert len(state.messages) == count

    async def test_the_message_is_saved_before_the_model_is_asked(self, checkpointer):
        async def look(messages):
            saved = await checkpointer.load("t")
            assert shape(saved) == [("user", "Hi")]
            return "Seen."

        async with agent_of(look, checkpointer=checkpointer) as agent:
            assert (await agent.run("Hi", "t")).text == "Seen."

    async def test_a_model_that_raises_leaves_the_thread_to_resume(self, checkpointer):
        memory = Listener()
        options = {"checkpointer": checkpointer, "memory_manager": memory}
        async with agent_of(OSError("down"), "Hi.", **options) as agent:
            with pytest.raises(OSError, match="down"):
                await agent.run("Hello", "t", user_id="ada")
            assert shape(await agent.state("t")) == [("user", "Hello")]
            assert memory.ended == []
            result = await agent.resume("t")
            assert shape(result.state) == [("user", "Hello"), ("assistant", "Hi.")]
            assert [state.metadata["user_id"] for state in memory.ended] == ["ada"]

    async def test_two_runs_at_once_on_one_thread(self, checkpointer, monkeypatch):
        async with agent_of(*["Hi."] * 4, checkpointer=checkpointer) as agent:
            await agent.run("First", "t")
            both, look = asyncio.Barrier(2), checkpointer.list_with_metadata

            async def look_at_once(*args, **options):
                found = await look(*args, **options)
                await both.wait()
                return found

            runs = [agent.run("One", "t"), agent.run("Two", "t")]
            with monkeypatch.context() as patch:
                patch.setattr(checkpointer, "list_with_metadata", look_at_once)
                outcomes = await asyncio.gather(*runs, return_exceptions=True)
            won = [each for each in outcomes if not isinstance(each, BaseException)]
            lost = [each for each in outcomes if isinstance(each, BaseException)]
            assert [type(each) for each in lost] == [CheckpointConflictError]
            assert await agent.state("t") == won[0].state
            assert len(won[0].state.messages) == 4
            said = {"One", "Two"} - {m.content for m in won[0].messages}
            again = await agent.run(said.pop(), "t")
            assert validate(again.state.messages) == []
            assert len(again.state.messages) == 6

    async def test_a_run_that_is_overtaken_loses_its_answer_only(self, checkpointer):
        async with agent_of(lambda _: overtake(), "Overtaken.", checkpointer=checkpointer) as agent:

            async def overtake():
                await agent.run("Me first", "t")
                return "Too late."

            with pytest.raises(CheckpointConflictError):
                await agent.run("Hello", "t")
            assert shape(await agent.state("t")) == [
                ("user", "Hello"),
                ("user", "Me first"),
                ("assistant", "Overtaken."),
            ]

    @pytest.mark.slow
    async def test_a_long_thread_stays_cheap(self):
        checkpointer = DeltaCheckpointer()
        costs = []
        async with agent_of(*["Noted."] * 200, checkpointer=checkpointer) as agent:
            for turn in range(200):
                result = await agent.run(f"Fact number {turn}.", "t", user_id="ada")
                stats = await checkpointer.get_storage_stats("t")
                costs.append(stats["compressed_size"])
        assert costs[199] < 2.2 * costs[99]
        assert costs[199] < 3 * len(encode_json(result.state.to_checkpoint()))


class TestResume:
    async def test_unknown_and_finished_threads(self, checkpointer):
        memory = Listener()
        options = {"checkpointer": checkpointer, "memory_manager": memory}
        async with agent_of("Hi.", **options) as agent:
            with pytest.raises(CheckpointNotFoundError):
                await agent.resume("t")
            ran = await agent.run("Hello", "t")
            result = await agent.resume("t")
            assert (result.text, result.messages, result.iterations) == ("Hi.", (), 0)
            assert result.state == ran.state
            assert result.checkpoint_id == ran.checkpoint_id
        assert len(memory.ended) == 1

    async def test_an_answer_without_its_end_is_ended(self, checkpointer):
        memory = Listener()
        async with agent_of("Hi.", checkpointer=checkpointer, memory_manager=memory) as agent:
            await agent.run("Hello", "t")
            newest = (await agent.history("t", 1))[0]
            await checkpointer.delete("t", newest.checkpoint_id)
            assert (await agent.resume("t")).text == "Hi."
            assert (await agent.history("t", 1))[0].metadata["kind"] == "done"
        assert len(memory.ended) == 2

    @pytest.mark.slow
    @settings(deadline=None, max_examples=25)
    @given(crash=st.integers(0, 12), names=st.permutations(["one", "two", "three"]))
    def test_whatever_was_saved_is_never_done_again(self, crash, names):
        """A run is cut off after any of its saves; what comes of it is as if it had not been."""
        asyncio.run(crash_and_resume(crash, names))

    async def test_a_thread_that_holds_no_conversation(self, checkpointer):
        await checkpointer.save(AgentState(), "empty")
        async with agent_of(checkpointer=checkpointer) as agent:
            result = await agent.resume("empty")
        assert (result.text, result.stop_reason) == ("", "done")


class Crash(BaseException):
    """The end of the process, as far as one test goes."""


class Dying(DeltaCheckpointer):
    """A checkpointer whose process dies after some saves."""

    left = 1000

    async def save(self, *args, **options):
        if self.left == 0:
            raise Crash
        self.left -= 1
        return await super().save(*args, **options)


async def crash_and_resume(saves, names):
    ran = []

    def make(name):
        async def work():
            ran.append(name)
            return name

        work.__name__ = name
        return work

    checkpointer = Dying()
    checkpointer.left = saves
    model = Planner([calls(*names[:2]), calls(names[2]), Message.assistant("Done.")])
    agent = Agent(model, tools=[make(name) for name in names], checkpointer=checkpointer)
    try:
        result = await agent.run("Go", "t")
    except Crash:
        checkpointer.left = 1000
        if saves == 0:
            assert not await checkpointer.exists("t")
            return
        done = {m.name for m in (await agent.state("t")).messages if m.role == Role.TOOL}
        before = len(ran)
        result = await agent.resume("t")
        assert not done & set(ran[before:])
    assert validate(result.state.messages) == []
    assert result.text == "Done."
    assert sorted(m.name for m in result.state.messages if m.role == Role.TOOL) == sorted(names)
    assert set(ran) == set(names)


class Planner:
    """A model without a memory of its own: the thread says where in the plan it is."""

    def __init__(self, plan):
        self.plan = plan

    async def __call__(self, messages, *, tools=()):
        return self.plan[sum(message.role == Role.ASSISTANT for message in messages)]
