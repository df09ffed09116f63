from __future__ import annotations

from contextlib import asynccontextmanager

import pytest

from locus_memory import get_store, open_backend
from locus_memory.agent.loop import (
    Agent,
)
from locus_memory.chat.openai.model import OpenAIChat
from locus_memory.chat.scripted import ScriptedModel
from locus_memory.checkpoint.chain import DeltaCheckpointer
from locus_memory.errors import (
    BackendClosedError,
    BackendError,
    CheckpointConflictError,
    CheckpointNotFoundError,
    ConfigurationError,
    InvalidArgumentError,
    InvalidKeyError,
    LocusMemoryError,
    ModelAnswerError,
    StateTypeError,
)
from locus_memory.memory.manager import LLMMemoryManager
from locus_memory.messages import Message, Role, ToolCall
from locus_memory.state import AgentState
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

    async def test_a_checkpointer_of_something_else_will_not(self):
        class Total(dict):
            @classmethod
            def from_checkpoint(cls, document):
                return sum(document.values())

            def to_checkpoint(self):
                return dict(self)

        totals = DeltaCheckpointer(state_type=Total)
        await totals.save({"a": 1, "b": 2}, "t")
        async with agent_of(checkpointer=totals) as agent:
            with pytest.raises(StateTypeError, match="AgentState, not int"):
                await agent.run("Hello", "t")

    async def test_what_cannot_be_opened_leaves_nothing_open(self, tmp_path):
        (tmp_path / "folder").mkdir()
        with pytest.raises(BackendError):
            async with agent_of(checkpointer="sqlite:folder", memory_manager="sqlite:agent.db"):
                raise AssertionError
        async with get_store("sqlite:agent.db") as store:
            await store.put(("a",), "b", 1)

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
            given = {"tenant": "x", "user_id": "ada"}
            await agent.run("Hi", "t", user_id="ada", metadata=given)
            more = {"lang": "de", "thread_id": "t"}
            result = await agent.run("Hi", "t", user_id="ada", metadata=more)
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

    async def test_a_user_named_in_the_metadata_is_the_user(self, checkpointer):
        memory = LLMMemoryManager("memory")
        options = {"checkpointer": checkpointer, "memory_manager": memory}
        async with memory, Agent(ScriptedModel(), **options) as agent:
            told = await agent.run("I live in Paris.", "t", metadata={"user_id": "bob"})
            asked = await agent.run("Where do I live?", "u", metadata={"user_id": "eve"})
            assert told.state.metadata["user_id"] == "bob"
            assert asked.text == "I do not know."
            assert len(await memory.for_user("bob").retrieve()) == 1
            with pytest.raises(InvalidArgumentError, match="another user's"):
                await agent.run("Hi", "t", metadata={"user_id": "eve"})
            same = await agent.run("Hi", "t", metadata=told.state.metadata)
            assert same.state.metadata == told.state.metadata

    @pytest.mark.parametrize("metadata", [None, {}, {"user_id": None}, {"lang": "de"}])
    async def test_a_run_that_names_nobody_is_nobody(self, checkpointer, metadata):
        memory = LLMMemoryManager("memory")
        options = {"checkpointer": checkpointer, "memory_manager": memory}
        async with memory, Agent(ScriptedModel(), **options) as agent:
            await agent.run("I live in Paris.", "t", user_id="ada")
            await agent.fork("t", new_thread_id="fork")
            for thread in ("t", "fork"):
                before = await agent.history(thread)
                with pytest.raises(InvalidArgumentError, match=f"{thread!r} belongs to a user"):
                    await agent.run("Where do I live?", thread, metadata=metadata)
                with pytest.raises(InvalidArgumentError, match="pass user_id="):
                    await anext(agent.stream("Where do I live?", thread, metadata=metadata))
                assert await agent.history(thread) == before
            await agent.run("hello", "nobodys", metadata=metadata)
            again = await agent.run("Where do I live?", "nobodys", metadata=metadata)
            assert again.text == "I do not know."

    @pytest.mark.parametrize("metadata", [None, {"user_id": None}])
    async def test_a_run_may_act_as_the_user_of_its_thread(self, checkpointer, metadata):
        options = {"checkpointer": checkpointer, "inherit_user": True}
        async with Agent(ScriptedModel(), **options) as agent:
            await agent.run("I live in Paris.", "t", user_id="ada")
            asked = await agent.run("Where do I live?", "t", metadata=metadata)
            assert (asked.text, asked.state.metadata["user_id"]) == (
                "You said: I live in Paris.",
                "ada",
            )
            with pytest.raises(InvalidArgumentError, match="another user's"):
                await agent.run("Hi", "t", user_id="bob")

    @pytest.mark.parametrize(
        "metadata",
        [
            {"user_id": "eve"},
            {"user_id": ""},
            {"user_id": 7},
            {"thread_id": "u"},
            {"thread_id": None},
            {"forked_from": {"thread_id": "u", "messages": 2}},
        ],
    )
    async def test_metadata_that_contradicts_the_run(self, metadata):
        async with agent_of("Hi.", checkpointer="memory") as agent:
            with pytest.raises(InvalidArgumentError):
                await agent.run("Hi", "t", user_id="ada", metadata=metadata)
            assert await agent.history("t") == []

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
            {"model": OpenAIChat},
            {"model": OpenAIChat, "memory_manager": "memory"},
            {"tools": [add, add]},
            {"tools": [7]},
            {"max_iterations": 0},
            {"max_iterations": "2"},
            {"system_prompt": 7},
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

    async def test_a_model_that_is_not_async(self):
        def model(messages):
            return Message.assistant("hi")

        with pytest.raises(ModelAnswerError, match="async def"):
            await Agent(model).run("hi")

    async def test_an_answer_of_nothing_is_an_empty_text(self):
        async with agent_of(Message.assistant()) as agent:
            result = await agent.run("hi")
        assert (result.messages[-1].content, result.text) == ("", "")


class TestThreads:
    async def test_fork_and_history(self, checkpointer):
        async with agent_of(*"ABCDE", checkpointer=checkpointer) as agent:
            await agent.run("one", "t", user_id="ada")
            middle = (await agent.history("t", 1))[0].checkpoint_id
            await agent.run("two", "t", user_id="ada")
            fork = await agent.fork("t", middle)
            other = await agent.fork("t", new_thread_id="u")
            assert other == "u"
            forked = await agent.run("three", fork, user_id="ada")
            assert [m.content for m in forked.state.messages] == ["one", "A", "three", "C"]
            assert forked.state.metadata == {
                "thread_id": fork,
                "user_id": "ada",
                "forked_from": {"thread_id": "t", "messages": 2},
            }
            assert len((await agent.state("u")).messages) == 4
            assert len((await agent.state("t")).messages) == 4
            assert len(await agent.history("t", 2)) == 2
            older = await agent.history("t", 10, before=middle)
            assert [info.metadata["kind"] for info in older] == ["assistant", "user"]

    async def test_a_fork_that_is_resumed_knows_its_name(self, checkpointer):
        async with agent_of(*"ABC", checkpointer=checkpointer) as agent:
            await agent.run("one", "t", user_id="ada")
            start = (await agent.history("t"))[-1].checkpoint_id
            await agent.fork("t", start, "u")
            resumed = await agent.resume("u")
        assert resumed.state.metadata == {
            "thread_id": "u",
            "user_id": "ada",
            "forked_from": {"thread_id": "t", "messages": 1},
        }
        assert [m.content for m in resumed.state.messages] == ["one", "B"]

    async def test_a_fork_of_a_fork_knows_where_it_comes_from(self, checkpointer):
        async with agent_of(*"ABCD", checkpointer=checkpointer) as agent:
            await agent.run("one", "t")
            await agent.fork("t", new_thread_id="u")
            await agent.run("two", "u")
            await agent.fork("u", new_thread_id="v")
            last = await agent.run("three", "v")
            assert last.state.metadata["forked_from"] == {"thread_id": "u", "messages": 4}
            again = await agent.run("four", "v", metadata=last.state.metadata)
            assert again.state.metadata == last.state.metadata
            assert "forked_from" not in (await agent.state("t")).metadata

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
