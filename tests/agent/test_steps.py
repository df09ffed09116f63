from __future__ import annotations

import asyncio
import math
from contextlib import asynccontextmanager
from types import SimpleNamespace

import pytest

from locus_memory.agent import (
    Agent,
    Done,
    MessageAdded,
    Saved,
    TextDelta,
    ToolFinished,
    ToolStarted,
)
from locus_memory.chat.base import INVALID_ARGUMENTS, ToolSpec
from locus_memory.conversation.validation import CUT_OFF, validate
from locus_memory.errors import (
    ModelAnswerError,
)
from locus_memory.messages import Message, Role, ToolCall
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


def cancelled():
    raise asyncio.CancelledError


async def cancelled_later():
    raise asyncio.CancelledError


async def waits_for_cancelled():
    task = asyncio.create_task(asyncio.sleep(60))
    task.cancel()
    await task


async def gives_up():
    asyncio.current_task().cancel()
    await asyncio.sleep(60)


class Hooks:
    """A memory manager with nothing but the two hooks, not even async."""

    def __init__(self):
        self.started, self.ended = [], []

    def on_session_start(self, state):
        self.started.append(state)
        note = Message(role="system", content="NOTE", metadata={"locus_memory_block": True})
        messages = [*state.messages[:1], note, *state.messages[1:]]
        return state.model_copy(update={"messages": messages, "metadata": {"seen": 1}})

    def on_session_end(self, state):
        self.ended.append(state)


class TestManagers:
    async def test_memories_are_seen_and_never_saved(self, checkpointer):
        memory = Hooks()
        async with agent_of(
            calls("add", a=1, b=2),
            "Three.",
            checkpointer=checkpointer,
            memory_manager=memory,
            system_prompt="Be brief.",
            tools=[add],
        ) as agent:
            result = await agent.run("Add", "t", user_id="ada")
            seen = [[m.content or "calls" for m in call] for call in agent.model.calls]
            assert seen == [
                ["Be brief.", "NOTE\n\nAdd"],
                ["Be brief.", "NOTE\n\nAdd", "calls", "3"],
            ]
            assert "system" not in {m.role for m in (await agent.state("t")).messages}
        assert len(memory.started) == len(memory.ended) == 1
        assert memory.started[0].metadata["user_id"] == "ada"
        assert memory.ended[0].messages == result.state.messages
        assert result.state.metadata == {"thread_id": "t", "user_id": "ada", "seen": 1}

    @pytest.mark.parametrize(
        "broken",
        [
            SimpleNamespace(on_session_start=None, on_session_end=None),
            SimpleNamespace(on_session_start=lambda _: None, on_session_end=lambda _: 1 / 0),
        ],
    )
    async def test_a_memory_manager_that_fails_is_an_event(self, broken, happened):
        async with agent_of("Hi.", memory_manager=broken) as agent:
            assert (await agent.run("Hello")).text == "Hi."
        assert [(e.name, e.attributes["hook"]) for e in happened] == [
            ("agent.memory_failed", "on_session_start"),
            ("agent.memory_failed", "on_session_end"),
        ]
        assert all(isinstance(e.error, Exception) for e in happened)

    @pytest.mark.parametrize("name", ["apply", "async_apply"])
    async def test_trimming_is_for_the_model_only(self, name, checkpointer):
        async def last(messages):
            return messages[-1:]

        apply = last if name == "async_apply" else lambda messages: messages[-1:]
        manager = SimpleNamespace(**{name: apply})
        async with agent_of(
            "One.", "Two.", checkpointer=checkpointer, conversation_manager=manager
        ) as agent:
            await agent.run("First", "t")
            result = await agent.run("Second", "t")
        assert [[m.content for m in call] for call in agent.model.calls] == [["First"], ["Second"]]
        assert len(result.state.messages) == 4

    async def test_a_conversation_manager_that_fails_is_an_event(self, happened):
        manager = SimpleNamespace(apply=lambda _: 1 / 0)
        async with agent_of("Hi.", conversation_manager=manager) as agent:
            assert (await agent.run("Hello")).text == "Hi."
        assert [type(e.error) for e in happened if e.name == "agent.trim_failed"] == [
            ZeroDivisionError
        ]

    @pytest.mark.parametrize("fail", [cancelled, waits_for_cancelled])
    async def test_a_cancellation_that_is_the_managers_own_is_an_event(self, fail, happened):
        memory = SimpleNamespace(on_session_start=lambda _: fail(), on_session_end=lambda _: fail())
        trimmer = SimpleNamespace(apply=lambda _: fail())
        options = {"memory_manager": memory, "conversation_manager": trimmer}
        async with agent_of("Hi.", **options) as agent:
            assert (await agent.run("Hello")).text == "Hi."
        assert [event.name for event in happened] == [
            "agent.memory_failed",
            "agent.trim_failed",
            "agent.memory_failed",
        ]

    @pytest.mark.parametrize("hook", ["on_session_start", "on_session_end", "apply"])
    async def test_cancelling_a_run_in_a_manager_ends_it(self, hook, happened):
        started = asyncio.Event()

        async def wait(_):
            started.set()
            await asyncio.Event().wait()

        hooks = {"on_session_start": lambda state: state, "on_session_end": lambda _: None}
        apply = wait if hook == "apply" else list
        options = {
            "memory_manager": SimpleNamespace(**{**hooks, hook: wait}),
            "conversation_manager": SimpleNamespace(apply=apply),
        }
        async with agent_of("Hi.", **options) as agent:
            running = asyncio.create_task(agent.run("Hello"))
            await started.wait()
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running
        assert happened == []

    @pytest.mark.parametrize("junk", [["x"], "abc", [], [{"role": "user"}], 7])
    async def test_a_trimmer_or_a_memory_that_returns_no_messages_is_an_event(self, junk, happened):
        memory = SimpleNamespace(
            on_session_start=lambda _: SimpleNamespace(messages=junk, metadata={}),
            on_session_end=lambda _: None,
        )
        trimmer = SimpleNamespace(apply=lambda _: junk)
        options = {"memory_manager": memory, "conversation_manager": trimmer}
        async with agent_of("Hi.", **options) as agent:
            assert (await agent.run("Hello")).text == "Hi."
            assert [m.content for m in agent.model.calls[0]] == ["Hello"]
        assert [event.name for event in happened] == ["agent.memory_failed", "agent.trim_failed"]

    async def test_hooks_may_be_async(self):
        class Later(Hooks):
            async def on_session_start(self, state):
                return super().on_session_start(state)

            async def on_session_end(self, state):
                super().on_session_end(state)

        memory = Later()
        async with agent_of("Hi.", memory_manager=memory) as agent:
            await agent.run("Hello")
        assert [m.content for m in agent.model.calls[0]] == ["NOTE\n\nHello"]
        assert len(memory.ended) == 1


class TestTools:
    async def test_calls_run_at_once_and_are_saved_as_they_finish(self, checkpointer):
        second_done = asyncio.Event()

        async def first():
            await asyncio.wait_for(second_done.wait(), 10)
            return "1"

        async def second():
            second_done.set()
            return "2"

        async with agent_of(
            calls("first", "second"), "Done.", checkpointer=checkpointer, tools=[first, second]
        ) as agent:
            result = await agent.run("Go", "t")
        assert shape(result.state)[2:4] == [("tool", "2"), ("tool", "1")]
        assert validate(result.state.messages) == []
        assert agent.model.tools[0][0] == ToolSpec(
            "first", "", agent.tools["first"].spec.parameters
        )

    async def test_what_goes_wrong_is_told_to_the_model(self):
        broken = ToolCall(id="c-4", name="add")
        asking = Message(
            role="assistant",
            tool_calls=(
                ToolCall(id="c-1", name="sub"),
                ToolCall(id="c-2", name="add", arguments={"a": "x", "b": 2}),
                ToolCall(id="c-3", name="fail"),
                broken,
            ),
            metadata={INVALID_ARGUMENTS: {"c-4": "not JSON"}},
        )

        def fail():
            raise ValueError("too hot")

        async with agent_of(asking, "Sorry.", tools=[add, fail]) as agent:
            result = await agent.run("Go")
        told = {m.tool_call_id: m.content for m in result.messages if m.role == Role.TOOL}
        assert told["c-1"] == "Error: no tool 'sub'; there are: add, fail"
        assert told["c-2"].startswith("Error: invalid arguments: a: ")
        assert told["c-3"] == "Error: ValueError: too hot"
        assert told["c-4"] == "Error: invalid arguments: not JSON"
        assert (result.text, result.iterations) == ("Sorry.", 2)

    async def test_ids_that_are_used_again_are_made_unique(self, checkpointer):
        asking = Message.assistant(tool_calls=[ToolCall(id="call_0", name="add")] * 2)
        marked = asking.model_copy(update={"metadata": {INVALID_ARGUMENTS: {"call_0": "bad"}}})
        async with agent_of(
            asking, marked, "Done.", checkpointer=checkpointer, tools=[add]
        ) as agent:
            result = await agent.run("Go", "t")
        assert validate(result.state.messages) == []
        again = [m for m in result.messages if m.tool_calls][1]
        assert set(again.metadata[INVALID_ARGUMENTS]) == {c.id for c in again.tool_calls}
        assert [m.content for m in result.messages[-3:-1]] == ["Error: invalid arguments: bad"] * 2

    async def test_max_iterations_leaves_no_call_open(self, checkpointer):
        answers = [calls("add", a=1, b=1)] * 3
        async with agent_of(
            *answers, "Done.", checkpointer=checkpointer, tools=[add], max_iterations=2
        ) as agent:
            result = await agent.run("Go", "t")
            assert (result.stop_reason, result.iterations, result.text) == ("max_iterations", 2, "")
            assert validate((await agent.state("t")).messages) == []
            resumed = await agent.resume("t")
        assert (resumed.stop_reason, resumed.iterations, resumed.text) == ("done", 2, "Done.")
        assert resumed.state.iteration == 4

    async def test_cancelling_a_run_cancels_its_tools(self, checkpointer):
        started, ended = asyncio.Event(), []

        async def wait():
            started.set()
            try:
                await asyncio.Event().wait()
            finally:
                ended.append(True)

        def quick():
            return "done"

        async with agent_of(
            calls("wait", "quick"), checkpointer=checkpointer, tools=[wait, quick]
        ) as agent:
            running = asyncio.create_task(agent.run("Go", "t"))
            await started.wait()
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running
            assert ended == [True]
            assert asyncio.all_tasks() == {asyncio.current_task()}
            assert shape(await agent.state("t"))[0] == ("user", "Go")

    @pytest.mark.parametrize("tool", [cancelled, cancelled_later, waits_for_cancelled, gives_up])
    async def test_a_cancellation_that_is_the_tools_own_ends_no_run(
        self, tool, checkpointer, happened
    ):
        async def slow():
            for _ in range(20):
                await asyncio.sleep(0)
            return "ok"

        async with agent_of(
            calls(tool.__name__, "slow"), "Done.", checkpointer=checkpointer, tools=[tool, slow]
        ) as agent:
            result = await agent.run("Go", "t")
        assert result.text == "Done."
        told = {m.name: m.content for m in result.messages if m.role == Role.TOOL}
        assert told == {"slow": "ok", tool.__name__: "Error: CancelledError"}
        [event] = [event for event in happened if event.name == "agent.tool_failed"]
        assert event.attributes["tool"] == tool.__name__
        assert isinstance(event.error, asyncio.CancelledError)
        assert asyncio.current_task().cancelling() == 0

    @pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
    def test_the_end_of_the_program_is_not_the_tools_to_keep(self, error):
        def leave():
            raise error

        async def main():
            async with agent_of(calls("leave"), tools=[leave]) as agent:
                await agent.run("Go")

        with pytest.raises(error):
            asyncio.run(main())

    async def test_an_answer_that_json_cannot_hold_is_mended_and_saved(
        self, checkpointer, happened
    ):
        arguments = [{"a": math.nan}, {"a": 2**70}, {"a": b"x"}, {"\ud83d": 1}, {"a": 1, "b": 2}]
        asked = [
            ToolCall(id=f"c{n}\ud83d", name="add", arguments=each)
            for n, each in enumerate(arguments)
        ]
        asking = Message(
            role="assistant",
            content="\ud83d Hm \ud83d\udc4b",
            name="\udc4b",
            tool_calls=(*asked, ToolCall(name="\ud83d")),
            metadata={"usage": 3, "when": object(), "\ud83d": 1, INVALID_ARGUMENTS: "none"},
        )
        async with agent_of(asking, "Done.", checkpointer=checkpointer, tools=[add]) as agent:
            result = await agent.run("Go", "t")
            assert (await agent.state("t")).messages == result.state.messages
        answer = result.messages[1]
        assert (answer.content, answer.name) == ("\ufffd Hm \U0001f44b", "\ufffd")
        assert [call.arguments for call in answer.tool_calls] == [*[{}] * 4, {"a": 1, "b": 2}, {}]
        assert set(answer.metadata) == {"usage", INVALID_ARGUMENTS}
        assert set(answer.metadata[INVALID_ARGUMENTS]) == {c.id for c in answer.tool_calls[:4]}
        told = {m.tool_call_id: m.content for m in result.messages if m.role == Role.TOOL}
        assert [told[call.id].partition("$")[0] for call in answer.tool_calls] == [
            *["Error: invalid arguments: "] * 4,
            "3",
            "Error: no tool '\ufffd'; there are: add",
        ]
        [event] = [event for event in happened if event.name == "agent.answer_mended"]
        assert event.attributes["parts"] == ["content", "metadata", "name", "tool_calls"]


async def stream(agent, *args, **options):
    return [event async for event in agent.stream(*args, **options)]


class TestStream:
    async def test_tells_what_happens_in_order(self, checkpointer):
        answers = [calls("add", a=1, b=2), "It is three."]
        async with agent_of(*answers, checkpointer=checkpointer, tools=[add]) as agent:
            told = await stream(agent, "Add", "t")
        kinds = [type(event) for event in told]
        text = [TextDelta] * 3
        added = [MessageAdded, Saved]
        assert kinds == [
            *added,
            *added,
            *(ToolStarted, ToolFinished),
            *added,
            *text,
            *added,
            *(Saved, Done),
        ]
        assert "".join(e.text for e in told if isinstance(e, TextDelta)) == "It is three."
        result = told[-1].result
        assert result.messages == tuple(e.message for e in told if isinstance(e, MessageAdded))
        assert result.checkpoint_id == told[-2].checkpoint_id
        assert result.state == await checkpointer.load("t")
        assert (told[4].call.name, told[5].result.content) == ("add", "3")

    async def test_is_what_run_does(self):
        answers = [calls("add", a=1, b=2), "Three."]
        async with agent_of(*answers, *answers, tools=[add]) as agent:
            plain = await agent.run("Add")
            told = await stream(agent, "Add")
        assert shape(told[-1].result.state) == shape(plain.state)
        assert not [event for event in told if isinstance(event, Saved)]

    async def test_an_error_comes_after_what_was_told(self):
        async with agent_of(OSError("down")) as agent:
            running = agent.stream("Hi")
            assert isinstance(await anext(running), MessageAdded)
            with pytest.raises(OSError, match="down"):
                await anext(running)

    async def test_a_model_that_ends_its_stream_without_a_message(self):
        class Short(FakeModel):
            async def stream(self, messages, /, *, tools=()):
                yield "Hi"

        told = Agent(Short()).stream("Hi")
        with pytest.raises(ModelAnswerError, match="NoneType"):
            [event async for event in told]

    async def test_closing_early_leaves_no_task_and_a_thread_to_resume(self, checkpointer):
        ended = []

        async def wait():
            try:
                await asyncio.Event().wait()
            finally:
                ended.append(True)

        answers = [calls("wait"), "Done."]
        async with agent_of(*answers, checkpointer=checkpointer, tools=[wait]) as agent:
            running = agent.stream("Go", "t")
            async for event in running:
                if isinstance(event, ToolStarted):
                    await asyncio.sleep(0)
                    break
            await running.aclose()
            assert ended == [True]
            assert asyncio.all_tasks() == {asyncio.current_task()}
            assert shape(await agent.state("t")) == [("user", "Go"), ("assistant", "wait")]
            result = await agent.run("Never mind", "t")
        assert shape(result.state)[2:] == [
            ("tool", CUT_OFF),
            ("user", "Never mind"),
            ("assistant", "Done."),
        ]
        assert all(message.id for message in result.state.messages)

    async def test_a_stream_nobody_reads_does_nothing(self):
        async with agent_of() as agent:
            await agent.stream("Hi").aclose()
        assert agent.model.calls == []
