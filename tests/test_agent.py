from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from locus_memory import events, get_checkpointer, open_backend
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
from locus_memory.checkpoint.chain import DeltaCheckpointer
from locus_memory.conversation.faults import CUT_OFF, validate
from locus_memory.errors import (
    BackendClosedError,
    CheckpointConflictError,
    CheckpointNotFoundError,
    ConfigurationError,
    InvalidArgumentError,
    InvalidKeyError,
    LocusMemoryError,
    ModelAnswerError,
    StateTypeError,
)
from locus_memory.messages import Message, Role, ToolCall
from locus_memory.state import AgentState
from locus_memory.store.item import encode_json
from locus_memory.testing.model import FakeModel

BACKENDS = ["memory", "file:threads", "sqlite:agent.db"]


@pytest.fixture(autouse=True)
def empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def happened():
    found = []
    stop = events.subscribe(found.append)
    yield found
    stop()


@pytest.fixture(params=BACKENDS)
async def checkpointer(request):
    async with get_checkpointer(request.param) as made:
        yield made


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


class TestRun:
    async def test_a_conversation_goes_on(self, checkpointer):
        async with agent_of("Hi Ada.", "You are Ada.", checkpointer=checkpointer) as agent:
            first = await agent.run("I am Ada.", "t")
            second = await agent.run("Who am I?", "t")
        assert (first.text, first.iterations, first.stop_reason) == ("Hi Ada.", 1, "done")
        assert [m.content for m in second.messages] == ["Who am I?", "You are Ada."]
        assert shape(second.state) == [
            ("user", "I am Ada."),
            ("assistant", "Hi Ada."),
            ("user", "Who am I?"),
            ("assistant", "You are Ada."),
        ]
        assert [m.content for m in agent.model.calls[1]] == ["I am Ada.", "Hi Ada.", "Who am I?"]
        assert await checkpointer.load("t") == second.state
        assert await checkpointer.list_checkpoints("t", 1) == [second.checkpoint_id]

    @pytest.mark.parametrize("where", BACKENDS)
    async def test_a_string_opens_lazily_and_is_closed(self, where):
        agent = Agent(FakeModel(["Hi."] * 2), checkpointer=where)
        result = await agent.run("Hello")
        assert (await agent.state(result.thread_id)).messages == result.messages
        await agent.close()
        await agent.close()
        if where != "memory":
            async with agent_of(checkpointer=where) as again:
                assert (await again.resume(result.thread_id)).text == "Hi."
        if where.startswith("sqlite"):
            with pytest.raises(BackendClosedError):
                await agent.run("Hello")

    async def test_what_is_given_is_not_closed(self):
        async with open_backend("sqlite:agent.db") as backend:
            async with agent_of("Hi.", checkpointer=backend) as agent:
                await agent.run("Hello", "t")
            assert await backend.checkpointer.list_threads() == ["t"]

    async def test_a_checkpointer_of_dicts_will_do(self):
        dicts = DeltaCheckpointer(state_type=None)
        async with agent_of("Hi.", "Yes.", checkpointer=dicts) as agent:
            await agent.run("Hello", "t")
            result = await agent.run("Still there?", "t")
            await dicts.save({"messages": "none"}, "other")
            with pytest.raises(StateTypeError):
                await agent.run("Hello", "other")
        assert len(result.state.messages) == 4

    async def test_without_a_checkpointer_nothing_is_kept(self):
        async with agent_of("Hi.", "Who?") as agent:
            assert (await agent.run("I am Ada.", "t")).checkpoint_id is None
            result = await agent.run("Who am I?", "t")
            assert len(result.state.messages) == 2
            for verb in (agent.resume, agent.fork, agent.history, agent.state):
                with pytest.raises(ConfigurationError, match="give it a checkpointer"):
                    await verb("t")

    async def test_the_system_prompt_is_seen_first_and_never_saved(self):
        checkpointer = DeltaCheckpointer()
        for prompt in ("Be brief.", "Be kind."):
            options = {"checkpointer": checkpointer, "system_prompt": prompt}
            async with agent_of("Hi.", **options) as agent:
                result = await agent.run("Hello", "t")
            seen = agent.model.calls[0]
            assert [m.content for m in seen if m.role == Role.SYSTEM] == [prompt]
            assert seen[0].content == prompt
            assert "system" not in {m.role for m in result.state.messages}

    async def test_every_message_has_an_id_of_its_own(self):
        async with agent_of(calls("add", a=1, b=2), "Three.", tools=[add]) as agent:
            result = await agent.run("Add")
        ids = [message.id for message in result.state.messages]
        assert len(ids) == len(set(ids)) == 4
        assert all(ids)

    async def test_metadata(self, checkpointer):
        async with agent_of("1", "2", checkpointer=checkpointer, agent_id="helper") as agent:
            await agent.run("Hi", "t", user_id="ada", metadata={"tenant": "x", "user_id": "eve"})
            result = await agent.run("Hi", "t", metadata={"lang": "de", "thread_id": "u"})
            with pytest.raises(InvalidArgumentError, match="another user's"):
                await agent.run("Hi", "t", user_id="bob")
        assert result.state.agent_id == "helper"
        assert result.state.metadata == {
            "tenant": "x",
            "lang": "de",
            "user_id": "ada",
            "thread_id": "t",
        }
        found = await checkpointer.query_by_metadata({"user_id": "ada", "kind": "done"})
        assert [info.thread_id for info in found] == ["t", "t"]
        assert found[0].metadata == {
            "kind": "done",
            "step": 1,
            "run_id": result.state.run_id,
            "agent_id": "helper",
            "user_id": "ada",
        }

    async def test_bad_arguments_write_nothing(self, checkpointer):
        async with agent_of(checkpointer=checkpointer) as agent:
            for text in (None, 7, "\ud83d"):
                with pytest.raises(InvalidArgumentError):
                    await agent.run(text, "t")
            for name in ("", 7):
                with pytest.raises(InvalidKeyError):
                    await agent.run("Hi", name)
                with pytest.raises(InvalidKeyError):
                    await agent.run("Hi", "t", user_id=name)
            with pytest.raises(InvalidArgumentError):
                await agent.run("Hi", "t", metadata=["x"])
            with pytest.raises(InvalidArgumentError):
                await agent.run("Hi", "t", metadata={"when": object()})
            assert await agent.history("t") == []


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
        memory = Hooks()
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
                ["Be brief.", "NOTE", "Add"],
                ["Be brief.", "NOTE", "Add", "calls", "3"],
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

    async def test_hooks_may_be_async(self):
        class Later(Hooks):
            async def on_session_start(self, state):
                return super().on_session_start(state)

            async def on_session_end(self, state):
                super().on_session_end(state)

        memory = Later()
        async with agent_of("Hi.", memory_manager=memory) as agent:
            await agent.run("Hello")
        assert [m.content for m in agent.model.calls[0]] == ["Hello", "NOTE"]
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

    async def test_a_tool_may_cancel_itself_and_so_the_run(self):
        async def quit_():
            raise asyncio.CancelledError

        async with agent_of(calls("quit_"), tools=[quit_]) as agent:
            with pytest.raises(asyncio.CancelledError):
                await agent.run("Go")


class TestMaking:
    def test_tools_for_a_model_that_takes_none(self):
        async def model(messages):
            return Message.assistant("Hi.")

        Agent(model)
        with pytest.raises(ConfigurationError, match="takes the keyword tools="):
            Agent(model, tools=[add])

    @pytest.mark.parametrize(
        "options",
        [
            {"model": "gpt"},
            {"tools": [add, add]},
            {"tools": [7]},
            {"max_iterations": 0},
            {"checkpointer": "nowhere:"},
            {"memory_manager": 7},
            {"memory_manager": "nowhere:"},
            {"conversation_manager": 7},
        ],
    )
    def test_what_cannot_work(self, options):
        with pytest.raises(LocusMemoryError):
            Agent(**{"model": FakeModel(), **options})

    async def test_a_three_line_model(self):
        async def echo(messages):
            return Message.assistant(f"You said {messages[-1].content!r}.")

        assert (await Agent(echo).run("hi")).text == "You said 'hi'."

    @pytest.mark.parametrize(
        ("answer", "why"),
        [(lambda: "hi", "with str, not"), (lambda: Message.user("hi"), "as 'user'")],
    )
    async def test_a_model_that_answers_with_something_else(self, answer, why):
        async def model(messages):
            return answer()

        with pytest.raises(ModelAnswerError, match=why):
            await Agent(model).run("hi")

    async def test_an_answer_of_nothing_is_an_empty_text(self):
        async with agent_of(Message.assistant()) as agent:
            result = await agent.run("hi")
        assert (result.messages[-1].content, result.text) == ("", "")


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


class TestResume:
    async def test_unknown_and_finished_threads(self, checkpointer):
        memory = Hooks()
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
        memory = Hooks()
        async with agent_of("Hi.", checkpointer=checkpointer, memory_manager=memory) as agent:
            await agent.run("Hello", "t")
            newest = (await agent.history("t", 1))[0]
            await checkpointer.delete("t", newest.checkpoint_id)
            assert (await agent.resume("t")).text == "Hi."
            assert (await agent.history("t", 1))[0].metadata["kind"] == "done"
        assert len(memory.ended) == 2

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


class TestThreads:
    async def test_fork_and_history(self, checkpointer):
        async with agent_of(*"ABCDE", checkpointer=checkpointer) as agent:
            await agent.run("one", "t", user_id="ada")
            middle = (await agent.history("t", 1))[0].checkpoint_id
            await agent.run("two", "t")
            fork = await agent.fork("t", middle)
            other = await agent.fork("t", new_thread_id="u")
            assert other == "u"
            forked = await agent.run("three", fork)
            assert [m.content for m in forked.state.messages] == ["one", "A", "three", "C"]
            assert forked.state.metadata == {"thread_id": fork, "user_id": "ada"}
            assert len((await agent.state("u")).messages) == 4
            assert len((await agent.state("t")).messages) == 4
            assert len(await agent.history("t", 2)) == 2
            older = await agent.history("t", 10, before=middle)
            assert [info.metadata["kind"] for info in older] == ["assistant", "user"]

    async def test_what_is_not_there(self, checkpointer):
        async with agent_of("A", checkpointer=checkpointer) as agent:
            assert await agent.history("t") == []
            for verb in (agent.fork, agent.state):
                with pytest.raises(CheckpointNotFoundError):
                    await verb("t")
                await checkpointer.save(AgentState(), "s")
                with pytest.raises(CheckpointNotFoundError):
                    await verb("s", "nothing")
            with pytest.raises(CheckpointConflictError):
                await agent.fork("s", new_thread_id="s")
