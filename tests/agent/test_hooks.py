"""The hooks of an agent: their order, their failures, and what ends."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest

from locus_memory import (
    Agent,
    BaseMemoryManager,
    LLMMemoryManager,
    Memory,
    Message,
    ScriptedModel,
    ToolCall,
)
from locus_memory.agent.hooks import MemoryHooks
from locus_memory.chat.base import ToolSpec
from locus_memory.conversation.base import ConversationManager
from locus_memory.conversation.summary.manager import SummarizingManager
from locus_memory.errors import ConfigurationError, ModelUnavailableError
from locus_memory.memory.base import NoopMemoryManager
from locus_memory.memory.providers import BaseMemoryProvider, ProviderManager
from locus_memory.memory.providers.settings import MemorySettings
from locus_memory.state import AgentState
from locus_memory.tools import Tool

RAISES = MemorySettings(on_error="raise")
IN_THE_PROMPT = MemorySettings(placement="system")
HOOKS = (
    *("prefetch", "queue_prefetch", "on_turn_complete", "on_pre_compact"),
    *("on_session_end", "shutdown"),
)


class Recording(BaseMemoryProvider):
    """A provider that notes its calls, and misbehaves in one of them."""

    def __init__(self, calls=None, *, bad=None, behave=None):
        self.calls = [] if calls is None else calls
        self.bad, self.behave = bad, behave

    async def _note(self, hook, *facts):
        self.calls.append((hook, *facts))
        if hook == self.bad:
            await self.behave()

    async def prefetch(self, query, *, session_id=""):
        await self._note("prefetch", query, session_id)
        return "Ada likes tea."

    async def queue_prefetch(self, query, *, session_id=""):
        await self._note("queue_prefetch", query, session_id)

    async def on_turn_complete(self, user, assistant, *, session_id=""):
        await self._note("on_turn_complete", user, assistant, session_id)

    async def on_pre_compact(self, messages):
        await self._note("on_pre_compact", *(each.content for each in messages))

    async def on_session_end(self, messages):
        await self._note("on_session_end", *(each.role.value for each in messages))

    async def shutdown(self):
        await self._note("shutdown")


class LastTwo(ConversationManager):
    """Shows the system messages, a summary of what goes, and the last two messages."""

    def apply(self, messages):
        head = [each for each in messages if each.role == "system"]
        said = [each for each in messages if each.role != "system"]
        return [*head, *([Message.system("(a summary)")] if said[2:] else []), *said[-2:]]


def model_of(calls):
    """Return a model that calls a tool once, and then answers."""

    async def model(messages, *, tools):
        calls.append(("model", len(messages)))
        if messages[-1].role == "user":
            return Message.assistant(tool_calls=[ToolCall(id="1", name="look")])
        return Message.assistant("It rains.")

    return model


def agent_of(calls, provider, **options):
    def look():
        calls.append(("tool",))
        return "rain"

    return Agent(
        model_of(calls),
        tools=[look],
        conversation_manager=LastTwo(),
        memory_manager=provider,
        **options,
    )


async def test_the_order_of_the_hooks():
    calls = []
    async with agent_of(calls, Recording(calls)) as agent:
        result = await agent.run("How is the weather?", "t")
    assert [each[0] for each in calls] == [
        *("prefetch", "model", "tool", "on_pre_compact", "model"),
        *("on_turn_complete", "queue_prefetch", "on_session_end", "shutdown"),
    ]
    told = {each[0]: each[1:] for each in calls}
    assert told["prefetch"] == ("How is the weather?", "t")
    assert told["on_pre_compact"] == ("How is the weather?",)
    assert told["on_turn_complete"] == ("How is the weather?", "It rains.", "t")
    assert told["queue_prefetch"] == ("How is the weather?", "t")
    assert told["on_session_end"] == ("user", "assistant", "tool", "assistant")
    assert result.failures == ()


async def test_a_message_that_goes_is_told_once():
    calls = []
    async with agent_of(calls, Recording(calls), checkpointer="memory") as agent:
        for _ in range(3):
            await agent.run("How is the weather?", "t")
        thread = (await agent.state("t")).messages
    gone = [text for each in calls if each[0] == "on_pre_compact" for text in each[1:]]
    assert gone == [each.content for each in thread[:-3]]


async def test_the_order_with_a_summary():
    calls = []

    async def summarize(messages):
        calls.append(("summary",))
        return "They spoke of the weather."

    summary = SummarizingManager(threshold=2, keep_recent=1, summarize_fn=summarize)
    async with Agent(
        model_of(calls),
        tools=[Tool(ToolSpec(name="look", description="", parameters={}), lambda: "rain")],
        memory_manager=Recording(calls),
        conversation_manager=summary,
        checkpointer="memory",
    ) as agent:
        await agent.run("How is the weather?", "t")
        calls.clear()
        await agent.run("And now?", "t")
        thread = (await agent.state("t")).messages
    names = [each[0] for each in calls]
    assert names[:4] == ["prefetch", "summary", "on_pre_compact", "model"]
    assert names[-4:] == ["on_turn_complete", "queue_prefetch", "on_session_end", "shutdown"]
    gone = [text for each in calls if each[0] == "on_pre_compact" for text in each[1:]]
    assert gone == [each.content for each in thread[: len(gone)]]
    assert len(gone) >= 4


async def test_what_was_told_is_forgotten_beyond_ten_thousand(monkeypatch):
    monkeypatch.setattr("locus_memory.agent.hooks._MOST_IDS", 3)
    calls = []
    hooks = MemoryHooks(ProviderManager(Recording(calls)))
    gone = [Message.user(str(number)).model_copy(update={"id": str(number)}) for number in range(5)]
    await hooks.compact(AgentState(), gone, [], "t")
    await hooks.compact(AgentState(), gone, [], "t")
    await hooks.compact(AgentState(), gone, [], "other")
    assert [each[1:] for each in calls] == [
        ("0", "1", "2", "3", "4"),
        ("0", "1"),
        ("0", "1", "2", "3", "4"),
    ]


async def fail():
    raise RuntimeError("out of order")


async def hang():
    await asyncio.Event().wait()


async def ignore_cancellation():
    with suppress(asyncio.CancelledError):
        await asyncio.Event().wait()
    await asyncio.Event().wait()


async def cancel_itself():
    raise asyncio.CancelledError


@pytest.mark.parametrize("behave", [fail, hang, ignore_cancellation, cancel_itself])
@pytest.mark.parametrize("hook", HOOKS)
async def test_a_hook_that_fails_hangs_or_is_cancelled_changes_no_answer(hook, behave, happened):
    calls = []
    provider = Recording(calls, bad=hook, behave=behave)
    manager = ProviderManager(provider, recall_timeout=0.02, hook_timeout=0.02)
    async with asyncio.timeout(20), agent_of(calls, manager) as agent:
        result = await agent.run("How is the weather?", "t")
        await asyncio.sleep(0.05)
        await manager.close()
    assert (result.text, result.stop_reason) == ("It rains.", "done")
    assert {each[0] for each in calls} >= set(HOOKS)
    [event] = [each for each in happened if each.name == "agent.memory_failed"]
    assert event.attributes["hook"] == hook
    expected = {fail: RuntimeError, cancel_itself: asyncio.CancelledError}.get(behave, TimeoutError)
    assert isinstance(event.error, expected)
    during = {"prefetch", "on_pre_compact", "on_turn_complete"}
    assert result.failures == ((event,) if hook in during else ())


@pytest.mark.parametrize("hook", ["prefetch", "on_pre_compact", "on_turn_complete"])
async def test_a_cancelled_run_cancels_its_hook(hook):
    waiting, cancelled = asyncio.Event(), []

    async def behave():
        waiting.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append(hook)
            raise

    agent = agent_of([], Recording(bad=hook, behave=behave))
    run = asyncio.create_task(agent.run("How is the weather?"))
    await waiting.wait()
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    await asyncio.sleep(0)
    assert cancelled == [hook]


async def test_a_slow_preparation_is_not_waited_for():
    provider = Recording(bad="queue_prefetch", behave=hang)
    async with asyncio.timeout(3), agent_of([], provider) as agent:
        assert (await agent.run("How is the weather?")).text == "It rains."


async def test_a_failure_may_end_the_run():
    agent = agent_of([], Recording(bad="prefetch", behave=fail), memory_settings=RAISES)
    with pytest.raises(RuntimeError, match="out of order"):
        await agent.run("How is the weather?")


async def test_a_run_without_an_answer_is_no_turn():
    calls = []
    async with agent_of(calls, Recording(calls), max_iterations=1) as agent:
        result = await agent.run("How is the weather?")
    assert result.stop_reason == "max_iterations"
    assert "on_turn_complete" not in {each[0] for each in calls}


class Foreign:
    """A manager with the two hooks of the contract, and some of the new ones."""

    def __init__(self):
        self.calls = []

    def on_session_start(self, state):
        self.calls.append("on_session_start")
        return state

    def on_session_end(self, state):
        self.calls.append("on_session_end")

    def prefetch(self, query, *, session_id):
        self.calls.append("prefetch")
        return "Ada likes </memory> tea."

    def on_turn_complete(self, user, assistant, *, session_id):
        self.calls.append("on_turn_complete")

    def shutdown(self):
        self.calls.append("shutdown")


async def test_a_foreign_manager_has_the_hooks_that_it_has():
    seen = []

    async def model(messages):
        seen.extend(messages)
        return Message.assistant("Yes.")

    manager = Foreign()
    options = {"memory_manager": manager, "memory_settings": IN_THE_PROMPT}
    async with Agent(model, system_prompt="Be kind.", **options) as agent:
        await agent.run("Hello.")
    assert manager.calls == [
        *("on_session_start", "prefetch", "on_session_end", "on_turn_complete", "shutdown"),
    ]
    prompt, block, _ = [each.content for each in seen]
    assert prompt == "Be kind."
    assert block.startswith("<memory>\n")
    assert block.count("</memory>") == 1


class Inherited(NoopMemoryManager):
    """A manager of this library that overrides a hook."""

    on_session_start = BaseMemoryManager.on_session_start

    async def prefetch(self, query, *, session_id=""):
        return f"<memory>\nabout {query} in {session_id}\n</memory>"


async def test_a_manager_of_ours_asks_its_own_prefetch_once():
    seen = []

    async def model(messages):
        seen.append([each.content for each in messages])
        return Message.assistant("Yes.")

    await Agent(model, memory_manager=Inherited(), memory_settings=IN_THE_PROMPT).run("tea", "t")
    assert seen == [["<memory>\nabout tea in t\n</memory>", "tea"]]


class Ending(NoopMemoryManager):
    def __init__(self):
        self.ended = []

    async def on_session_end(self, state):
        self.ended.append([each.content for each in state.messages])


@pytest.mark.parametrize("end_on_error", [False, True])
async def test_the_end_hook_of_a_run_that_fails(end_on_error):
    async def model(messages):
        raise ModelUnavailableError("no network")

    manager = Ending()
    agent = Agent(model, memory_manager=manager, end_on_error=end_on_error)
    with pytest.raises(ModelUnavailableError):
        await agent.run("I have a cat.")
    assert manager.ended == ([["I have a cat."]] if end_on_error else [])


@pytest.mark.parametrize("end_on_error", [False, True])
async def test_the_end_hook_of_a_run_that_is_cancelled(end_on_error):
    asked = asyncio.Event()

    async def model(messages):
        asked.set()
        await asyncio.Event().wait()

    manager = Ending()
    agent = Agent(model, memory_manager=manager, end_on_error=end_on_error)
    run = asyncio.create_task(agent.run("I have a cat."))
    await asked.wait()
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    assert manager.ended == ([["I have a cat."]] if end_on_error else [])


async def test_the_end_hook_is_called_once_however_a_run_ends():
    class Failing(Ending):
        async def on_session_end(self, state):
            await super().on_session_end(state)
            raise RuntimeError("out of order")

    manager = Failing()
    agent = Agent(
        ScriptedModel(), memory_manager=manager, end_on_error=True, memory_settings=RAISES
    )
    with pytest.raises(RuntimeError):
        await agent.run("I have a cat.")
    assert len(manager.ended) == 1


@pytest.mark.parametrize(
    ("settings", "called"),
    [
        (None, {"prefetch", "on_turn_complete", "queue_prefetch", "on_pre_compact"}),
        (MemorySettings(enabled=False), set()),
        (MemorySettings(prefetch=False), {"on_turn_complete", "on_pre_compact"}),
        (MemorySettings(sync_turns=False), {"prefetch", "queue_prefetch", "on_pre_compact"}),
    ],
)
async def test_what_the_settings_switch_off(settings, called):
    calls = []
    agent = agent_of(calls, Recording(calls), memory_settings=settings)
    await agent.run("How is the weather?")
    assert {each[0] for each in calls} - {"model", "tool"} == called
    assert (agent.memory_manager is None) is (not called)


@pytest.mark.slow
async def test_the_settings_name_a_provider():
    async with Agent(
        ScriptedModel(), memory_settings=MemorySettings(provider="local:memory")
    ) as agent:
        await agent.run("I live in Vienna.")
        assert len(await agent.memory_manager.retrieve()) == 1
    with pytest.raises(ConfigurationError, match="given twice"):
        Agent(
            ScriptedModel(),
            memory_manager="memory",
            memory_settings=MemorySettings(provider="local"),
        )
    with pytest.raises(ConfigurationError, match=r"MemorySettings\(...\) or None, not dict"):
        Agent(ScriptedModel(), memory_settings={"enabled": True})


@pytest.mark.parametrize("characters", [0, 100, 240, 300, 6000, 7000, 20_000])
async def test_the_recalled_text_is_cut_at_whole_lines(characters):
    class Long(BaseMemoryProvider):
        async def prefetch(self, query, *, session_id=""):
            return "\n".join(f"- fact {number} of many" for number in range(400))

    seen = []

    async def model(messages):
        seen.extend(each.content for each in messages)
        return Message.assistant("Yes.")

    settings = MemorySettings(max_prompt_chars=characters, placement="system")
    await Agent(model, memory_manager=Long(), memory_settings=settings).run("Hello.")
    *blocks, _ = seen
    assert len(blocks) == (characters > 230)
    for block in blocks:
        assert len(block) <= characters
        assert block.startswith("<memory>\n")
        assert block.endswith("\n</memory>")
        facts = [line for line in block.splitlines() if line.startswith("- ")]
        assert facts == [f"- fact {number} of many" for number in range(len(facts))]
        assert len(block) > characters - 25 or len(facts) == 400


@pytest.mark.parametrize("kind", ["manager", "tending", "foreign"])
async def test_the_text_of_any_manager_is_cut(kind):
    seen = []

    async def model(messages):
        seen.extend(each.content for each in messages)
        return Message.assistant("Yes.")

    class Talkative(Foreign):
        def prefetch(self, query, *, session_id):
            return "\n".join(f"- fact {number} of many" for number in range(400))

    async with LLMMemoryManager("memory", memory_budget_tokens=5000, retrieve_limit=50) as memory:
        facts = [Memory("user", f"k{n}", f"Fact {n} is one of many about tea.") for n in range(50)]
        await memory.save(facts)
        manager = {"manager": memory, "tending": "memory"}.get(kind) or Talkative()
        settings = MemorySettings(max_prompt_chars=500, placement="system")
        agent = Agent(model, memory_manager=manager, memory_settings=settings)
        if kind == "tending":
            await agent.memory_manager.save(facts)
        assert (await agent.run("tea?")).failures == ()
        await agent.close()
    block, _ = seen[:2]
    assert 400 < len(block) <= 500
    assert block.endswith("\n</memory>")


@pytest.mark.parametrize(
    "options",
    [
        {"enabled": 1},
        {"prefetch": None},
        {"sync_turns": "yes"},
        {"provider": 3},
        {"max_prompt_chars": -1},
        {"max_prompt_chars": 1.5},
        {"max_prompt_chars": True},
        {"placement": "end"},
        {"on_error": "ignore"},
    ],
)
def test_settings_that_cannot_work(options):
    [name] = options
    with pytest.raises(ConfigurationError, match=f"{name} is"):
        MemorySettings(**options)
