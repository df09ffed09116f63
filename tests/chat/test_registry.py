"""Models by strings."""

from __future__ import annotations

import sys
from importlib.metadata import EntryPoint

import pytest

from locus_memory import Agent, Message, OpenAIChat, ScriptedModel
from locus_memory._internal.resource import Resource
from locus_memory.chat import get_model, list_models, register_model
from locus_memory.errors import (
    ConfigurationError,
    MissingDriverError,
    UnknownOptionError,
    UnknownProviderError,
)


class Echo(Resource):
    """A model with a hint and an option, which notes when it is closed."""

    made = ()

    def __init__(self, hint, *, loud=False):
        self.hint, self.loud, self.closed = hint, loud, False
        Echo.made = (*Echo.made, self)

    async def __call__(self, messages, *, tools=()):
        return Message.assistant(f"{self.hint}: {messages[-1].content}")

    async def close(self):
        self.closed = True


@pytest.fixture
def echo():
    Echo.made = ()
    unregister = register_model("echo", Echo)
    yield Echo
    unregister()


def test_the_names_are_known():
    assert list_models() == ["oci", "openai", "scripted"]


def test_a_model_of_openai():
    model = get_model("openai:gpt-4.1-mini", base_url="http://localhost:1/v1", temperature=0)
    assert isinstance(model, OpenAIChat)
    assert model.model == "gpt-4.1-mini"
    assert get_model("OpenAI:qwen3:8b", base_url="http://localhost:1/v1").model == "qwen3:8b"


async def test_the_scripted_model():
    model = get_model("scripted")
    assert isinstance(model, ScriptedModel)
    assert (await get_model("scripted", script=["one"])([])).content == "one"


@pytest.mark.parametrize(
    ("where", "error", "message"),
    [
        (
            "gpt-4.1-mini",
            UnknownProviderError,
            r"'gpt-4\.1-mini'\. Known: oci, openai, scripted; .* is 'openai:<its name>'",
        ),
        ("opnai:x", UnknownProviderError, r"did you mean 'openai'\? Known: oci, openai, scripted"),
        ("bedrock:titan", UnknownProviderError, "register_model adds others"),
        ("openai", ConfigurationError, "say which model, after a colon"),
        ("scripted:x", ConfigurationError, "write just 'scripted'"),
        ("", ConfigurationError, "it is empty"),
        ("openai:", ConfigurationError, "nothing follows the colon"),
    ],
)
def test_a_bad_string_is_refused(where, error, message):
    for make in (get_model, Agent):
        with pytest.raises(error, match=message):
            make(where)


def test_an_unknown_option_is_refused():
    with pytest.raises(UnknownOptionError, match="unknown option 'temperture'"):
        get_model("openai:m", base_url="http://localhost:1/v1", temperture=0)
    with pytest.raises(UnknownOptionError, match="unknown option 'base_url'"):
        get_model("scripted", base_url="http://localhost:1/v1")


def test_a_missing_extra_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "openai", None)
    with pytest.raises(MissingDriverError, match=r"needs the 'openai' extra: pip install"):
        get_model("openai:gpt-4.1-mini")


def test_a_missing_key_is_named(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    with pytest.raises(ConfigurationError, match="OPENAI_API_KEY"):
        Agent("openai:gpt-4.1-mini")


async def test_an_agent_closes_the_model_of_a_string(echo):
    async with Agent("echo:hint") as agent:
        assert (await agent.run("hello")).text == "hint: hello"
        assert agent.model is echo.made[0]
        assert not echo.made[0].closed
    assert echo.made[0].closed


async def test_an_agent_leaves_a_model_that_it_is_given(echo):
    model = Echo("mine")
    async with Agent(model) as agent:
        await agent.run("hello")
    assert not model.closed


async def test_the_model_is_closed_after_the_memory_manager_that_uses_it(echo, monkeypatch):
    order = []

    async def close(self):
        order.append("model")

    monkeypatch.setattr(Echo, "close", close)
    agent = Agent("echo", memory_manager="memory")
    manager = agent.memory_manager
    ended = manager.close

    async def close_manager():
        order.append("manager")
        await ended()

    monkeypatch.setattr(manager, "close", close_manager)
    await agent.close()
    assert order == ["manager", "model"]


async def test_your_own_model(echo):
    assert list_models() == ["echo", "oci", "openai", "scripted"]
    model = get_model("ECHO", loud=True)
    assert (model.hint, model.loud) == (None, True)
    with pytest.raises(UnknownOptionError, match="unknown option 'quiet'"):
        get_model("echo", quiet=True)


def test_a_plugin_is_found(monkeypatch):
    entry = EntryPoint("Theirs", f"{__name__}:Echo", "locus_memory.models")
    monkeypatch.setattr(
        "importlib.metadata.entry_points", lambda *, group: [entry] if "models" in group else []
    )
    assert list_models() == ["oci", "openai", "scripted", "theirs"]
    assert get_model("theirs:big").hint == "big"
