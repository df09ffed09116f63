"""A memory manager in agents of `create_agent` and in graphs that are made by hand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

pytest.importorskip("langchain")

from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import RunnableLambda
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command, interrupt
from pydantic import Field

from locus_memory import LLMMemoryManager, forget, open_backend
from locus_memory.deletion import audit_deletion
from locus_memory.errors import ConfigurationError
from locus_memory.events import subscribe
from locus_memory.inspection.memories import runs_of
from locus_memory.integrations.langgraph import GraphMemory, LocusSaver, MemoryMiddleware
from locus_memory.integrations.langgraph.threads import Place
from locus_memory.memory.models import Memory, MemoryType

HOME, QUESTION = "I live in Lisbon.", "Where do I live?"
INLINE: dict[str, Any] = {"extract_mode": "inline"}


class Model(BaseChatModel):
    """Answers with what it was told to; keeps what it was asked."""

    answers: list[Any] = Field(default_factory=list)
    asked: list[Any] = Field(default_factory=list)

    @property
    def _llm_type(self) -> str:
        return "recorded"

    def bind_tools(self, tools, **_):
        return self

    def _generate(self, messages, stop=None, run_manager=None, **_):
        self.asked.append(messages)
        answer = self.answers.pop(0) if self.answers else "Noted."
        told = answer if isinstance(answer, AIMessage) else AIMessage(answer)
        return ChatResult(generations=[ChatGeneration(message=told)])

    def text(self):
        """Return all that the last call was shown."""
        return "\n".join(each.text for each in self.asked[-1])


def config(thread, user="ada", **more):
    return {"configurable": {"thread_id": thread, "user_id": user, **more}}


def said(text, **more):
    return {"messages": [HumanMessage(text, **more)]}


def made(kind, model, memory, saver=None, tools=()):
    """Return an agent of `create_agent`, or a graph made by hand."""
    if kind == "middleware":
        prompt = "Be brief."
        options = {"system_prompt": prompt, "middleware": [memory], "checkpointer": saver}
        return create_agent(model, list(tools), **options)
    chain = memory.recall | model

    def answer(state):
        return {"messages": [chain.invoke([SystemMessage("Be brief."), *state["messages"]])]}

    async def answered(state):
        return {"messages": [await chain.ainvoke([SystemMessage("Be brief."), *state["messages"]])]}

    builder = StateGraph(MessagesState).add_node("answer", RunnableLambda(answer, answered))
    builder.add_node("remember", memory.remember)
    return builder.add_edge(START, "answer").add_edge("answer", "remember").compile(saver)


@pytest.fixture(params=["middleware", "by hand"])
def kind(request):
    return request.param


@pytest.fixture
def memory_of(kind):
    return MemoryMiddleware if kind == "middleware" else GraphMemory


@pytest.fixture
def events():
    found = []
    unsubscribe = subscribe(found.append)
    yield found
    unsubscribe()


async def test_a_new_process_remembers_across_threads_on_one_file(kind, memory_of, tmp_path):
    model = Model()
    for thread, text in (("1", HOME), ("2", QUESTION), ("1", "And now?")):
        async with (
            open_backend(f"sqlite:{tmp_path / 'agent.db'}") as backend,
            LocusSaver(backend) as saver,
            memory_of(backend, **INLINE) as memory,
        ):
            await made(kind, model, memory, saver).ainvoke(said(text), config(thread))
    assert "Lisbon" in model.asked[1][0].text
    assert [each.type for each in model.asked[1]] == ["system", "human"]
    assert model.asked[1][0].text.startswith("Be brief.\n\n<memory>")
    assert [each.type for each in model.asked[2]] == ["system", "human", "ai", "human"]


def test_without_await_it_is_the_same(kind, memory_of, tmp_path):
    model, where = Model(), f"sqlite:{tmp_path / 'agent.db'}"
    for thread, text in (("1", HOME), ("2", QUESTION)):
        with LocusSaver(where) as saver, memory_of(where, **INLINE) as memory:
            made(kind, model, memory, saver).invoke(said(text), config(thread))
    assert "Lisbon" in model.asked[1][0].text


async def test_what_is_shown_is_not_kept_in_the_graph(kind, memory_of):
    model = Model()
    async with open_backend("memory") as backend, LocusSaver(backend) as saver:
        manager = LLMMemoryManager(backend, **INLINE)
        await manager.for_user("ada").add([("user", "My bicycle is a red Bianchi.")], thread_id="0")
        agent = made(kind, model, memory_of(manager), saver)
        await agent.ainvoke(said(HOME), config("1"))
        await manager.for_user("ada").add([("user", "I sold my red Bianchi.")], thread_id="0")
        question = "Is my Bianchi red?"
        await agent.ainvoke(said(question), config("1"))
        assert "<memory>" in model.text()
        assert model.asked[-1][-1].text.endswith(question)
        state = await agent.aget_state(config("1"))
        assert set(state.values) == {"messages"}
        texts = [each.text for each in state.values["messages"]]
        assert texts == [HOME, "Noted.", question, "Noted."]
        heads = [each async for each in saver.alist(config("1"))]
        assert "<memory>" not in repr(heads)
        await manager.close()


async def test_a_turn_recalls_once_and_its_prompt_stays(events):
    manager = LLMMemoryManager("memory", **INLINE)

    async def write():
        """Write a memory."""
        diet = Memory(MemoryType.USER, "diet", "Ada eats no nuts.")
        await manager.for_user("ada").save([diet])
        return "written"

    call = {"name": "write", "args": {}, "id": "c1"}
    model = Model(answers=[AIMessage("", tool_calls=[call]), "Done."])
    async with manager:
        home = Memory(MemoryType.USER, "home", "Ada lives in Lisbon.")
        await manager.for_user("ada").save([home])
        agent = made("middleware", model, MemoryMiddleware(manager), tools=[write])
        await agent.ainvoke(said("Write it."), config("1"))
        first, second = model.asked
        assert second[: len(first)] == first
        assert len(second) == len(first) + 2
        assert [each.name for each in events].count("memory.planned") == 1
        await agent.ainvoke(said("And now?"), config("2"))
        assert "nuts" in model.text()


async def test_each_message_is_queued_once(kind, memory_of):
    given = []

    def extract(messages):
        given.append([each.content for each in messages])
        return []

    async with (
        open_backend("memory") as backend,
        LocusSaver(backend) as saver,
        LLMMemoryManager(backend, extract_fn=extract, **INLINE) as manager,
    ):
        agent = made(kind, Model(), memory_of(manager), saver)
        await agent.ainvoke(said("One."), config("1"))
        await agent.ainvoke(said("Two."), config("1"))
    assert given[0] == ["One.", "Noted."]
    assert [each for each in given[1] if each != "Noted."] == ["Two."]


@pytest.mark.parametrize("where", ["config", "message"])
async def test_off_the_record_nothing_is_kept(kind, memory_of, where):
    async with LLMMemoryManager("memory", **INLINE) as manager:
        agent = made(kind, Model(), memory_of(manager))
        if where == "config":
            await agent.ainvoke(said(HOME), config("1", remember=False))
        else:
            marked = said(HOME, additional_kwargs={"remember": False})
            await agent.ainvoke(marked, config("1"))
        assert await manager.for_user("ada").retrieve() == []
        assert [each async for each in manager.for_user("ada").memories()] == []


async def test_each_user_has_their_own(kind, memory_of):
    model = Model()
    async with LLMMemoryManager("memory", **INLINE) as manager:
        agent = made(kind, model, memory_of(manager))
        await agent.ainvoke(said(HOME), config("1"))
        await agent.ainvoke(said(QUESTION), config("2", "bob"))
        assert "Lisbon" not in model.text()
        # A user without a valid name has none, and certainly not those of nobody.
        await agent.ainvoke(said(QUESTION), config("3", 7))
        assert "Lisbon" not in model.text()
        await agent.ainvoke(said(QUESTION), config("4"))
        assert "Lisbon" in model.text()


async def test_the_user_may_be_in_the_context():
    @dataclass
    class Context:
        user_id: str

    model = Model()
    async with LLMMemoryManager("memory", **INLINE) as manager:
        middleware = [MemoryMiddleware(manager)]
        agent = create_agent(model, middleware=middleware, context_schema=Context)
        for user, text in (("ada", HOME), ("bob", QUESTION), ("ada", QUESTION)):
            await agent.ainvoke(said(text), context=Context(user))
        shown = ["Lisbon" in "".join(each.text for each in asked[:-1]) for asked in model.asked]
        assert shown == [False, False, True]


class Failing:
    """A manager that fails."""

    async def on_session_start(self, state):
        raise RuntimeError("start")

    def on_session_end(self, state):
        raise RuntimeError("end")


async def test_a_memory_that_fails_ends_no_run(kind, memory_of, events):
    agent = made(kind, Model(), memory_of(Failing()))
    state = await agent.ainvoke(said(HOME), config("1"))
    assert state["messages"][-1].text == "Noted."
    failed = [each.attributes["hook"] for each in events if each.name == "agent.memory_failed"]
    assert failed == ["on_session_start", "on_session_end"]


async def test_a_manager_of_another_library_is_shown_as_it_says(kind, memory_of):
    class Manager:
        def on_session_start(self, state):
            [*before, last] = state.messages
            told = before[0].model_copy(update={"content": "Ada lives in Lisbon."})
            return state.model_copy(update={"messages": (*before, told, last)})

        def on_session_end(self, state):
            self.ended = state

    model, manager = Model(), Manager()
    await made(kind, model, memory_of(manager)).ainvoke(said(QUESTION), config("1"))
    assert model.asked[0][0].text == "Be brief.\n\nAda lives in Lisbon."
    assert manager.ended.metadata["thread_id"] == "1"


async def test_a_provider_gets_its_turns(kind, memory_of):
    turns = []

    class Provider:
        async def prefetch(self, query, *, session_id=""):
            return f"{query} ({session_id})"

        async def on_turn_complete(self, user, assistant, *, session_id=""):
            turns.append((user, assistant, session_id))

    model = Model()
    async with memory_of(Provider()) as memory:
        await made(kind, model, memory).ainvoke(said(HOME), config("1"))
    assert turns == [(HOME, "Noted.", "1")]
    assert f"{HOME} (1)" in model.asked[0][-1].text
    assert model.asked[0][0].text == "Be brief."


async def test_parts_of_a_prompt_and_a_message_stay():
    image = {"type": "image", "url": "https://example.org/a.png"}
    cached = {"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}
    async with LLMMemoryManager("memory", **INLINE) as manager:
        await manager.add(HOME)
        memory = GraphMemory(manager)
        asked = HumanMessage([{"type": "text", "text": QUESTION}, image])
        prompt, shown = await memory.recall.ainvoke([SystemMessage([cached]), asked])
        assert prompt.content[0] == cached
        assert "Lisbon" in prompt.content[1]["text"]
        assert shown is asked
        [prompt, _] = await memory.recall.ainvoke([("user", "And where do you think I live?")])
        assert "Lisbon" in prompt.text


async def test_an_agent_in_a_graph_has_a_thread_of_its_own():
    model = Model()
    async with LLMMemoryManager("memory", **INLINE) as manager:
        inner = made("middleware", model, MemoryMiddleware(manager))
        outer = GraphMemory(manager)
        builder = StateGraph(MessagesState).add_node("inner", inner).add_node(outer.remember)
        graph = builder.add_edge(START, "inner").add_edge("inner", "remember").compile()
        await graph.ainvoke(said(HOME), config("1"))
        [fact] = [each async for each in manager.for_user("ada").memories()]
        assert fact.metadata["thread_id"] == "1|inner"


async def test_an_interrupted_turn_is_remembered_when_it_is_completed():
    class Asking(AgentMiddleware):
        async def aafter_model(self, state, runtime):
            interrupt("Is that right?")

    async with (
        open_backend("memory") as backend,
        LocusSaver(backend) as saver,
        LLMMemoryManager(backend, **INLINE) as manager,
    ):
        middleware = [MemoryMiddleware(manager), Asking()]
        agent = create_agent(Model(), middleware=middleware, checkpointer=saver)
        await agent.ainvoke(said(HOME), config("1"))
        assert await manager.for_user("ada").retrieve() == []
        await agent.ainvoke(Command(resume=True), config("1"))
        assert len(await manager.for_user("ada").retrieve()) == 1


async def test_a_run_without_a_user_on_a_users_thread_is_nobodys(kind, memory_of, events):
    """The config of a snapshot has no user: what is said there must not outlive `forget`."""
    model = Model()
    async with open_backend("memory") as backend, LocusSaver(backend) as saver:
        for process in range(2):
            async with memory_of(backend, **INLINE) as memory:
                agent = made(kind, model, memory, saver)
                if not process:
                    await agent.ainvoke(said(HOME), config("1"))
                first = [each async for each in agent.aget_state_history(config("1"))][-1]
                await agent.ainvoke(said("I am allergic to plums."), first.config)
                last = {"configurable": {"thread_id": "1"}}
                await agent.ainvoke(said("I am allergic to plums."), last)
        assert {each.name for each in events} >= {"langgraph.user_missing"}
        report = await audit_deletion(backend, ["plums"])
        assert report.places[0].found == 0
        await forget(backend, user_id="ada")
        assert [
            each for each in await backend.store.list_namespaces() if "transcript" in each
        ] == []


async def test_a_thread_without_a_user_has_the_shared_memory(kind, memory_of):
    async with (
        open_backend("memory") as backend,
        LocusSaver(backend) as saver,
        memory_of(backend, **INLINE) as memory,
    ):
        model, place = Model(), {"configurable": {"thread_id": "1"}}
        for text in (HOME, QUESTION):
            await made(kind, model, memory, saver).ainvoke(said(text), place)
        other = {"configurable": {"thread_id": "2"}}
        await made(kind, model, memory, saver).ainvoke(said(QUESTION), other)
        assert "Lisbon" in model.asked[-1][0].text


def test_what_is_no_memory_is_an_error():
    for wrong in (None, 7):
        with pytest.raises(ConfigurationError):
            GraphMemory(wrong)
    with pytest.raises(ConfigurationError, match="extract_mode"):
        GraphMemory(Failing(), **INLINE)


async def test_a_later_run_tells_nothing_of_one_off_the_record(kind, memory_of, tmp_path):
    model = Model()
    async with open_backend(f"sqlite:{tmp_path}/a.db") as backend, LocusSaver(backend) as saver:
        memory = memory_of(backend)
        agent = made(kind, model, memory, saver)
        model.answers = ["You like whisky.", "Yes."]
        await agent.ainvoke(said("I like whisky."), config("t", remember=False))
        await agent.ainvoke(said("Hello."), config("t"))
        await memory.manager.drain()
        turns = await memory.manager.for_user("ada").search_transcript("whisky hello")
        assert [hit.item.value["text"] for hit in turns] == ["Hello."]


async def test_a_thread_of_another_user_is_not_the_next_ones(kind, memory_of, tmp_path):
    model = Model()
    async with open_backend(f"sqlite:{tmp_path}/a.db") as backend, LocusSaver(backend) as saver:
        memory = memory_of(backend)
        agent = made(kind, model, memory, saver)
        await agent.ainvoke(said("I like whisky."), config("t"))
        await agent.ainvoke(said("Hello."), config("t", user="bob"))
        await memory.manager.drain()
        bob = memory.manager.for_user("bob")
        assert await bob.search_transcript("whisky") == []
        assert len(await bob.search_transcript("hello")) == 1


async def test_what_was_forgotten_is_shown_no_more_without_ids():
    memory = GraphMemory(LLMMemoryManager("memory"))
    ada = memory.manager.for_user("ada")
    await ada.save(Memory(MemoryType.USER, "drink", "Ada likes whisky."))
    state = {"messages": [HumanMessage("Hello.")], "user_id": "ada"}
    assert "whisky" in str(await memory.recall.ainvoke(state))
    await ada.forget("drink")
    assert "whisky" not in str(await memory.recall.ainvoke(state))


async def test_an_erasure_of_a_user_takes_the_pending_writes_along(tmp_path):
    where = f"sqlite:{tmp_path}/graph.db"
    async with open_backend(where) as backend, LocusSaver(backend) as saver:
        builder = StateGraph(MessagesState).add_node("answer", lambda _: {"messages": ["Noted."]})
        graph = builder.add_edge(START, "answer").compile(checkpointer=saver)
        for user in ("ada", "bob"):
            place = {"configurable": {"thread_id": user, "user_id": user}}
            await graph.ainvoke({"messages": [f"I keep bees in {user}ville."]}, place)
        await forget(backend, user_id="ada")
        await backend.compact()
        assert (await audit_deletion(backend, ["adaville"])).is_proven
        left = await backend.checkpointer.list_threads()
        assert left
        assert {Place.named(name).thread_id for name in left} == {"bob"}


@pytest.mark.parametrize("name", ["friday", 'langgraph:["friday",""]'])
async def test_what_a_run_saw_is_found_by_the_thread_alone(name):
    async with (
        open_backend("memory") as backend,
        LocusSaver(backend) as saver,
        MemoryMiddleware(backend, **INLINE) as memory,
    ):
        agent = create_agent(Model(), middleware=[memory], checkpointer=saver)
        await agent.ainvoke(said(HOME), config("friday"))
        await agent.ainvoke(said(QUESTION), config("friday"))
        manager = LLMMemoryManager(backend)
        user, [newest] = await runs_of(backend, manager, name, None, 1)
        assert (user, newest.message) == ("ada", QUESTION)
