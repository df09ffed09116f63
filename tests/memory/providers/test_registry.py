"""Memory providers by name."""

from __future__ import annotations

import sys

import pytest

from locus_memory import (
    Agent,
    BaseMemoryProvider,
    LLMMemoryManager,
    Memory,
    MemoryOptions,
    MemoryProvider,
    MemorySettings,
    NoopMemoryManager,
    ProviderManager,
    ScriptedModel,
    get_memory_manager,
    list_memory_providers,
    register_memory_api,
    register_memory_provider,
)
from locus_memory.errors import ConfigurationError, UnknownOptionError, UnknownProviderError

PLUGINS = """
from locus_memory import BaseMemoryProvider, MemoryProvider


class Acme(BaseMemoryProvider):
    def __init__(self, place=None):
        self.place = place


ACME = MemoryProvider("acme", "Acme", "acme_memory:Acme")
TEXT = "not a provider"
"""


class Notes(BaseMemoryProvider):
    def __init__(self, folder="here", *, lines=3):
        self.folder, self.lines = folder, lines


class Keyless(BaseMemoryProvider):
    def __init__(self, *, lines=3):
        self.lines = lines


class Odd:
    """Something else than a provider."""


@pytest.fixture(autouse=True)
def empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def register():
    """Register an API and a provider under one name."""
    undo = []

    def registered(name, cls, **config):
        undo.append(register_memory_api(name, cls))
        options = MemoryOptions(config=config)
        undo.append(register_memory_provider(MemoryProvider(name, name.title(), name, options)))

    yield registered
    for each in undo:
        each()


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Install a distribution whose entry points are the given ones."""
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "acme_memory.py").write_text(PLUGINS)

    def installed(**entries):
        folder = tmp_path / "acme-1.0.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: acme\nVersion: 1.0\n")
        lines = [f"{name} = {value}\n" for name, value in entries.items()]
        group = "[locus_memory.memory_providers]\n"
        (folder / "entry_points.txt").write_text(group + "".join(lines))

    yield installed
    sys.modules.pop("acme_memory", None)


def test_the_built_in_providers():
    assert list_memory_providers() == ["hindsight", "holographic", "local", "mem0", "supermemory"]


@pytest.mark.parametrize(
    ("where", "file"),
    [
        ("local", "locus.db"),
        ("local:sqlite:./agent.db", "agent.db"),
        ("local:./agent.db", "agent.db"),
        ("LOCAL:sqlite:agent.db", "agent.db"),
        ("holographic", "locus.db"),
        ("holographic:./facts.db", "facts.db"),
        ("sqlite:./agent.db", "agent.db"),
        ("./agent.db", "agent.db"),
        ("agent.db", "agent.db"),
        ("local:memory", None),
        ("memory", None),
    ],
)
async def test_the_strings_of_a_store(tmp_path, where, file):
    async with get_memory_manager(where, max_memories=7) as manager:
        assert type(manager) is LLMMemoryManager
        await manager.save([Memory("user", "tea", "Likes tea.")])
        assert [each.content for each in await manager.retrieve("tea")] == ["Likes tea."]
    assert {each.name for each in tmp_path.iterdir()} == ({file} if file else set())


def test_the_trust_of_facts_is_on():
    for where, blend in (("local:memory", "hybrid"), ("holographic:memory", "trust")):
        assert get_memory_manager(where)._options.blend == blend


def test_an_unknown_provider():
    with pytest.raises(
        UnknownProviderError, match="unknown memory provider 'hindsigt': did you"
    ) as e:
        get_memory_manager("hindsigt:support")
    assert "mem0" in str(e.value)
    assert "sqlite" in str(e.value)


@pytest.mark.parametrize("where", ["", ":", "local:", "a b", None, 3, "mem0:hint"])
def test_what_is_no_string_of_a_provider(where, monkeypatch):
    monkeypatch.setenv("MEM0_API_KEY", "k")
    with pytest.raises(ConfigurationError):
        get_memory_manager(where)


@pytest.mark.parametrize("where", ["local:memory", "memory", "mem0", "notes"])
def test_an_unknown_option(where, register, monkeypatch):
    monkeypatch.setenv("MEM0_API_KEY", "k")
    register("notes", Notes)
    with pytest.raises(UnknownOptionError, match="colour"):
        get_memory_manager(where, colour="red")


async def test_a_provider_of_ones_own(register):
    register("notes", Notes, lines=5)
    manager = get_memory_manager("notes")
    assert type(manager) is ProviderManager
    assert (manager.provider.folder, manager.provider.lines) == ("here", 5)
    assert get_memory_manager("notes:there").provider.folder == "there"
    assert get_memory_manager("notes", folder="there", lines=1).provider.lines == 1
    with pytest.raises(ConfigurationError, match="'folder' is given twice"):
        get_memory_manager("notes:there", folder="elsewhere")
    assert "notes" in list_memory_providers()
    async with Agent(ScriptedModel(), memory_manager="notes:there") as agent:
        assert agent.memory_manager.provider.folder == "there"
    settings = MemorySettings(provider="notes")
    async with Agent(ScriptedModel(), memory_settings=settings) as agent:
        assert agent.memory_manager.provider.folder == "here"


def test_the_hint_outranks_the_configuration(register):
    register("notes", Notes, folder="configured")
    assert get_memory_manager("notes").provider.folder == "configured"
    assert get_memory_manager("notes:there").provider.folder == "there"


def test_no_repr_shows_the_configuration():
    options = MemoryOptions(config={"api_key": "secret"})
    assert "secret" not in repr(MemoryProvider("mine", "Mine", "mem0", options))


def test_a_provider_without_a_hint(register):
    register("keyless", Keyless)
    assert get_memory_manager("keyless", lines=1).provider.lines == 1
    with pytest.raises(ConfigurationError, match="keyless: takes no hint, write just 'keyless'"):
        get_memory_manager("keyless:hint")


def test_a_factory_gets_the_hint_as_that_of_a_store(register):
    def make(hint, **options):
        return Notes(hint, **options)

    register("made", make)
    assert get_memory_manager("made").provider.folder is None
    assert get_memory_manager("made:there", lines=1).provider.folder == "there"


def test_an_api_may_be_a_manager(register):
    register("noop", NoopMemoryManager)
    assert type(get_memory_manager("noop")) is NoopMemoryManager
    with pytest.raises(UnknownOptionError, match="noop: unknown option 'lines'"):
        get_memory_manager("noop", lines=1)


def test_an_api_that_makes_something_else(register):
    register("odd", Odd)
    with pytest.raises(ConfigurationError, match="on_session_start; Odd is not one"):
        get_memory_manager("odd")


def test_ones_own_takes_precedence_until_it_is_unregistered():
    undo_api = register_memory_api("notes", Notes)
    undo = register_memory_provider(MemoryProvider("mem0", "Mine", "notes"))
    assert type(get_memory_manager("mem0").provider) is Notes
    undo()
    undo_api()
    with pytest.raises(ConfigurationError, match="MEM0_API_KEY"):
        get_memory_manager("mem0")


def test_a_descriptor_without_its_api():
    undo = register_memory_provider(MemoryProvider("lost", "Lost", "nots"))
    with pytest.raises(ConfigurationError, match="lost: no memory API 'nots'"):
        get_memory_manager("lost")
    undo()


def test_what_is_no_registration():
    with pytest.raises(ConfigurationError, match="a memory provider's name is"):
        MemoryProvider("no name", "No", "local")
    with pytest.raises(ConfigurationError, match="a memory provider's name is"):
        register_memory_api("no name", Notes)
    with pytest.raises(ConfigurationError, match="a memory API is a class"):
        register_memory_api("notes", "Notes")
    with pytest.raises(ConfigurationError, match="a memory provider is a MemoryProvider"):
        register_memory_provider("notes")


def test_a_plugin_is_found_by_its_name(install):
    install(acme="acme_memory:ACME")
    assert get_memory_manager("acme:there").provider.place == "there"
    assert "acme" in list_memory_providers()


@pytest.mark.parametrize("value", ["acme_memory:MISSING", "no_such_module:X", "acme_memory:TEXT"])
def test_a_broken_plugin_breaks_no_other(install, events, value):
    install(acme="acme_memory:ACME", broken=value)
    assert "acme" in list_memory_providers()
    assert ("registry.plugin_failed", "broken") in {
        (each.name, each.attributes.get("provider")) for each in events
    }
    with pytest.raises(ConfigurationError, match="broken: its plugin"):
        get_memory_manager("broken")


async def test_an_agents_model_extracts_where_the_manager_lets_it(register):
    async def model(messages):
        raise NotImplementedError

    register("noop", NoopMemoryManager)
    for where in ("local:memory", "memory"):
        async with Agent(model, memory_manager=where) as agent:
            assert agent.memory_manager._extraction._extractor.name == "llm"
    async with Agent(model, memory_manager="noop") as agent:
        assert type(agent.memory_manager) is NoopMemoryManager
