"""Conversation managers by strings."""

from __future__ import annotations

import re
import sys
from importlib.metadata import EntryPoint

import pytest

from locus_memory import Agent, AgentState, LLMExtractor, LLMMemoryManager, Message
from locus_memory._internal.resource import Resource
from locus_memory.backends.inmemory.store import InMemoryStore
from locus_memory.chat import register_model
from locus_memory.conversation import (
    ConversationManager,
    NotesManager,
    NullManager,
    SlidingWindowManager,
    SummarizingManager,
    get_conversation_manager,
    list_conversation_managers,
    register_conversation_manager,
)
from locus_memory.errors import (
    ConfigurationError,
    InvalidArgumentError,
    MissingDriverError,
    UnknownOptionError,
    UnknownProviderError,
)
from locus_memory.testing.model import FakeModel

NAMES = ["notes", "null", "sliding_window", "summarizing"]


class Last(ConversationManager):
    """Shows the last messages, and notes when it is closed."""

    def __init__(self, count=None, *, loud=False):
        self.count, self.loud, self.closed = int(count or 1), loud, False

    def apply(self, messages):
        return list(messages)[-self.count :]

    async def close(self):
        self.closed = True


@pytest.fixture
def last():
    unregister = register_conversation_manager("last", Last)
    yield Last
    unregister()


@pytest.mark.parametrize(
    ("where", "options", "kind", "shown"),
    [
        ("null", {}, NullManager, "NullManager()"),
        ("sliding_window", {}, SlidingWindowManager, "window_size=20"),
        ("Sliding_Window:7", {"max_tokens": 90}, SlidingWindowManager, "size=7, .*max_tokens=90"),
        ("sliding_window", {"window_size": None, "max_tokens": 9}, SlidingWindowManager, "None"),
        ("summarizing", {"threshold": 9, "keep_recent": 3}, SummarizingManager, "threshold=9"),
        ("summarizing:scripted", {}, SummarizingManager, "threshold=30"),
        ("notes", {"keep_tokens": 50}, NotesManager, "tokens=30000, keep_tokens=50"),
        ("notes:900", {}, NotesManager, "threshold_tokens=900, keep_tokens=300"),
    ],
)
def test_each_manager_has_a_string(where, options, kind, shown):
    manager = get_conversation_manager(where, **options)
    assert type(manager) is kind
    assert re.search(shown, repr(manager))


def test_the_names_are_known():
    assert list_conversation_managers() == NAMES


BAD = [
    ("sliding", UnknownProviderError, "did you mean 'sliding_window'. Known: notes, null, "),
    ("sqlite:./a.db", UnknownProviderError, "unknown conversation manager 'sqlite'"),
    ("summarizing:gpt-4.1-mini", UnknownProviderError, "is 'openai:<its name>'"),
    ("summarizing:openai", ConfigurationError, "say which model, after a colon"),
    ("summarizing:", ConfigurationError, "nothing follows the colon"),
    ("sliding_window:many", ConfigurationError, "window_size is a number, .* not 'many'"),
    ("sliding_window:0", ConfigurationError, "window_size is a positive number, not 0"),
    ("notes:-1", ConfigurationError, "threshold_tokens is a positive number"),
    ("notes:1e3", ConfigurationError, "threshold_tokens is a number, .* not '1e3'"),
    ("null:1", ConfigurationError, "write just 'null'"),
    ("", ConfigurationError, "it is empty"),
    ("@nowhere", UnknownProviderError, "unknown preset"),
]


@pytest.mark.parametrize(("where", "error", "message"), BAD)
def test_a_bad_string_is_refused(where, error, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(error, match=message):
        get_conversation_manager(where)
    with pytest.raises(error, match=message):
        Agent("scripted", conversation_manager=where)


@pytest.mark.parametrize(
    ("where", "options", "error", "message"),
    [
        ("null", {"window_size": 1}, UnknownOptionError, "null: unknown option 'window_size'"),
        ("sliding_window:9", {"keep_tokens": 1}, UnknownOptionError, "Known: max_tokens, "),
        ("sliding_window:9", {"window_size": 9}, ConfigurationError, "given twice"),
        ("notes:9", {"keep_tokens": 10}, ConfigurationError, r"notes: keep_tokens \(10\) is above"),
        ("summarizing", {"threshold": 0}, ConfigurationError, "threshold is a positive number"),
        ("summarizing", {"summarize_fn": 3}, ConfigurationError, "summarize_fn is a function"),
        ("summarizing", {"store": "nosuch"}, UnknownProviderError, "nosuch"),
    ],
)
def test_bad_options_are_refused(where, options, error, message):
    with pytest.raises(error, match=message):
        get_conversation_manager(where, **options)


def test_a_missing_extra_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "openai", None)
    with pytest.raises(MissingDriverError, match=r"needs the 'openai' extra: pip install"):
        get_conversation_manager("summarizing:openai:gpt-4.1-mini")


async def test_an_agent_closes_the_manager_of_a_string(last):
    async with Agent(FakeModel(["Hello."]), conversation_manager="last:1") as agent:
        await agent.run("hi")
        manager = agent.conversation_manager
        assert [each.content for each in agent.model.calls[0]] == ["hi"]
    assert manager.closed


async def test_an_agent_leaves_a_manager_that_it_is_given():
    async with Agent("scripted", conversation_manager=(manager := Last())):
        pass
    assert not manager.closed


@pytest.mark.parametrize("manager", [3, SlidingWindowManager, object()])
def test_what_is_no_manager_is_refused(manager):
    with pytest.raises(ConfigurationError, match="a string such as 'sliding_window:20'"):
        Agent("scripted", conversation_manager=manager)


async def test_notes_are_those_of_the_memory_of_the_agent():
    answer = '{"changes": [], "notes": [{"text": "Ada asked for tea.", "messages": [1]}]}'

    async def model(messages):
        is_task = "long-term memory" in (messages[0].content or "")
        return Message.assistant(answer if is_task else "word " * 60)

    memory = LLMMemoryManager(InMemoryStore(), extract_fn=LLMExtractor(model))
    async with (
        memory,
        Agent(
            model,
            checkpointer="memory",
            memory_manager=memory,
            conversation_manager="notes:200",
        ) as agent,
    ):
        for _ in range(4):
            await agent.run("tea " * 40, "thread")
        state = (await agent.run("tea?", "thread")).state
        bound = agent.conversation_manager.for_run(state, memory)
        shown = await bound.async_apply(state.messages)
    assert any("Ada asked for tea." in (each.content or "") for each in shown)
    assert len(shown) < len(state.messages)


async def test_a_preset_names_a_manager_with_its_options(tmp_path, monkeypatch):
    (tmp_path / "pyproject.toml").write_text(
        '[tool.locus_memory.presets]\nshort = { url = "sliding_window:4", max_tokens = 50 }\n'
    )
    monkeypatch.chdir(tmp_path)
    assert "window_size=4, preserve_system=True, max_tokens=50" in repr(
        get_conversation_manager("@short")
    )
    assert "max_tokens=70" in repr(get_conversation_manager("@short", max_tokens=70))


def test_your_own_manager(last):
    assert list_conversation_managers() == sorted([*NAMES, "last"])
    manager = get_conversation_manager("LAST:2", loud=True)
    assert (manager.count, manager.loud) == (2, True)
    assert get_conversation_manager("last").count == 1
    with pytest.raises(UnknownOptionError, match="unknown option 'quiet'"):
        get_conversation_manager("last", quiet=True)


def test_a_plugin_is_found(monkeypatch):
    group = "locus_memory.conversation_managers"
    entry = EntryPoint("Theirs", f"{__name__}:Last", group)
    monkeypatch.setattr(
        "importlib.metadata.entry_points", lambda *, group: [entry] if "manager" in group else []
    )
    assert "theirs" in list_conversation_managers()
    assert get_conversation_manager("theirs:5").count == 5


STATE = AgentState(messages=(Message.user("hi"),))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "given",
    [{"messages": [Message.user("hi")]}, STATE, None, 3, "hi", [{"role": "user", "content": "hi"}]],
)
async def test_what_is_no_list_of_messages_is_refused(name, given):
    manager = get_conversation_manager(name)
    with pytest.raises(InvalidArgumentError, match=r"list of messages|message 0 has no role"):
        manager.apply(given)
    with pytest.raises(InvalidArgumentError, match=r"list of messages|message 0 has no role"):
        await manager.async_apply(given)


async def test_a_model_by_string_summarises_and_is_closed_with_the_manager():
    class Closing(FakeModel, Resource):
        closed = False

        async def close(self):
            self.closed = True

    made = Closing(["A talk about tea."])
    unregister = register_model("told", lambda hint: made)
    messages = [Message.user(f"tea {n}") for n in range(12)]
    options = {"threshold": 8, "keep_recent": 2}
    async with get_conversation_manager("summarizing:told", **options) as manager:
        shown = await manager.async_apply(messages)
    unregister()
    assert "- A talk about tea." in shown[0].content
    assert "user: tea 9\n</messages>" in made.calls[0][1].content
    assert made.closed
