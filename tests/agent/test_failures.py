"""What went wrong with the memory of a run, and what it cost."""

from __future__ import annotations

import logging

import pytest

from locus_memory import events
from locus_memory.agent.loop import Agent
from locus_memory.backends.inmemory.store import InMemoryStore
from locus_memory.chat.scripted import ScriptedModel
from locus_memory.chat.usage import Usage
from locus_memory.errors import (
    BackendUnavailableError,
    ConfigurationError,
    LocusMemoryError,
    ModelAnswerError,
)
from locus_memory.memory.base import NoopMemoryManager
from locus_memory.memory.extraction.extractors import LLMExtractor
from locus_memory.memory.manager import LLMMemoryManager
from locus_memory.memory.providers.settings import MemorySettings
from locus_memory.messages import Message
from locus_memory.testing import FakeClock
from locus_memory.testing.model import FakeModel

RAISES = MemorySettings(on_error="raise")
FACT = '{"changes": [{"op": "add", "type": "user", "key": "pet", "content": "A cat."}]}'


def answer(text, prompt=0, completion=0, **usage):
    told = {"prompt_tokens": prompt, "completion_tokens": completion, **usage}
    return Message(role="assistant", content=text, metadata={"usage": told})


def manager_of(*answers, **options):
    return LLMMemoryManager("memory", extract_fn=LLMExtractor(FakeModel(answers)), **options)


class BrokenManager(NoopMemoryManager):
    """Fails at the start or the end of a run."""

    def __init__(self, hook, error):
        self.hook, self.error = hook, error

    async def on_session_start(self, state):
        if self.hook == "start":
            raise self.error
        return state

    async def on_session_end(self, state):
        if self.hook == "end":
            raise self.error


@pytest.fixture
def log(monkeypatch, caplog):
    """The log, as if nothing was ever written to it."""
    clock = FakeClock()
    made = events.FailureLog(logging.getLogger("locus_memory"), clock=clock)
    monkeypatch.setattr(events, "_failures", made)
    return caplog


async def test_a_model_that_extracts_nothing_readable_is_not_invisible(log):
    async with manager_of("No.", "No.") as memory:
        agent = Agent(ScriptedModel(), memory_manager=memory)
        result = await agent.run("I have a cat.", user_id="ada")
        assert result.text == "Noted."
        names = [event.name for event in result.failures]
        assert names == ["memory.extraction_invalid", "memory.extract_failed"]
        assert isinstance(result.failures[0].error, ModelAnswerError)
    told = [record.getMessage() for record in log.records]
    assert any(line.startswith("memory.extraction_invalid: ModelAnswerError [") for line in told)
    assert any("thread=" in line for line in told)


async def test_a_run_without_failure_has_none(log):
    async with manager_of(FACT) as memory:
        result = await Agent(ScriptedModel(), memory_manager=memory).run("I have a cat.")
    assert (result.failures, log.records) == ((), [])


async def test_each_run_has_its_own_failures():
    agent = Agent(ScriptedModel(), memory_manager=BrokenManager("start", ValueError("bad")))
    for _ in range(2):
        [failure] = (await agent.run("hi")).failures
        assert failure.attributes == {"hook": "on_session_start"}


async def test_a_streamed_run_has_them_as_well():
    agent = Agent(ScriptedModel(), memory_manager=BrokenManager("end", ValueError("bad")))
    *_, done = [event async for event in agent.stream("hi")]
    assert [event.name for event in done.result.failures] == ["agent.memory_failed"]


@pytest.mark.parametrize("hook", ["start", "end"])
async def test_a_failure_of_the_memory_may_end_the_run(checkpointer, hook):
    memory = BrokenManager(hook, BackendUnavailableError("no store"))
    options = {"memory_manager": memory, "checkpointer": checkpointer}
    agent = Agent(ScriptedModel(), memory_settings=RAISES, **options)
    with pytest.raises(BackendUnavailableError, match="no store") as raised:
        await agent.run("I have a cat.", "t")
    assert raised.value.__notes__ == ["on_error='raise': agent.memory_failed"]
    said = [m.content for m in (await agent.state("t")).messages]
    assert said == (["I have a cat."] if hook == "start" else ["I have a cat.", "Noted."])
    memory.hook = None
    resumed = await agent.resume("t")
    assert (resumed.text, resumed.failures) == ("Noted.", ())
    assert (await agent.history("t", 1))[0].metadata["kind"] == "done"


async def test_an_extraction_that_fails_may_end_the_run(checkpointer):
    async with manager_of("No.", "No.", FACT) as memory:
        options = {"memory_manager": memory, "checkpointer": checkpointer}
        agent = Agent(ScriptedModel(), memory_settings=RAISES, **options)
        with pytest.raises(ModelAnswerError, match="is not readable"):
            await agent.run("I have a cat.", "t", user_id="ada")
        assert (await agent.resume("t")).text == "Noted."
        assert await memory.drain() == 0
        [found] = await memory.for_user("ada").retrieve()
        assert found.content == "A cat."


async def test_a_store_that_fails_at_recall_may_end_the_run():
    class Broken(InMemoryStore):
        async def search(self, *args, **options):
            raise BackendUnavailableError("no search")

    memory = LLMMemoryManager(Broken())
    async with (
        memory,
        Agent(ScriptedModel(), memory_manager=memory, memory_settings=RAISES) as agent,
    ):
        with pytest.raises(BackendUnavailableError, match="no search"):
            await agent.run("Where do I live?")


async def test_an_error_that_would_end_more_than_the_run_is_one_of_ours():
    async def quit_all(messages):
        raise SystemExit

    async with LLMMemoryManager("memory", extract_fn=quit_all) as memory:
        agent = Agent(ScriptedModel(), memory_manager=memory, memory_settings=RAISES)
        with pytest.raises(LocusMemoryError, match=r"memory\.extract_failed: SystemExit"):
            await agent.run("I have a cat.")


def test_what_is_no_way_to_treat_an_error():
    with pytest.raises(ConfigurationError, match="on_error is 'report' or 'raise', not 'ignore'"):
        MemorySettings(on_error="ignore")


async def test_what_happens_in_the_background_is_no_part_of_the_run():
    memory = manager_of("No.", "No.", extract_mode="background")
    async with memory:
        agent = Agent(ScriptedModel(), memory_manager=memory, memory_settings=RAISES)
        result = await agent.run("I have a cat.")
        await memory.drain()
    assert result.failures == ()


async def test_the_tokens_of_the_answers_and_of_the_extraction():
    def add(a: int, b: int) -> int:
        return a + b

    call = Message.assistant(tool_calls=[{"name": "add", "arguments": {"a": 1, "b": 2}}])
    asked = call.model_copy(update={"metadata": answer("", 100, 10).metadata})
    last = answer("Three.", input_tokens=0, prompt=200, completion=20, total_tokens=221)
    async with manager_of(answer("No.", 30, 3), answer(FACT, 40, 4)) as memory:
        agent = Agent(FakeModel([asked, last]), memory_manager=memory, tools=[add])
        result = await agent.run("Add 1 and 2.")
    assert result.usage == Usage(
        prompt_tokens=370, completion_tokens=37, total_tokens=408, extraction_tokens=77
    )


@pytest.mark.parametrize(
    "usage", [None, 7, [], {"prompt_tokens": "many"}, {"prompt_tokens": -5}, {"other": 1}]
)
async def test_a_model_that_tells_nothing_counts_as_nothing(usage):
    said = Message(role="assistant", content="Hi.", metadata={"usage": usage})
    assert (await Agent(FakeModel([said])).run("hi")).usage == Usage()
    assert (await Agent(ScriptedModel()).run("hi")).usage == Usage()


async def test_other_names_of_tokens():
    told = {"usage": {"input_tokens": 5, "output_tokens": 2}}
    said = Message(role="assistant", content="Hi.", metadata=told)
    result = await Agent(FakeModel([said])).run("hi")
    assert result.usage == Usage(prompt_tokens=5, completion_tokens=2, total_tokens=7)


async def test_nothing_to_resume_costs_nothing(checkpointer):
    agent = Agent(FakeModel([answer("Hi.", 5, 2)]), checkpointer=checkpointer)
    assert (await agent.run("hi", "t")).usage.total_tokens == 7
    again = await agent.resume("t")
    assert (again.text, again.usage) == ("Hi.", Usage())
