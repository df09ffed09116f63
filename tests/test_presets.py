"""Presets: names for provider strings, with secrets in the environment only."""

from __future__ import annotations

import pytest

from locus_memory import Agent, Memory, blocking, get_memory_manager
from locus_memory.backends.inmemory.store import InMemoryStore
from locus_memory.errors import (
    ConfigurationError,
    MissingDriverError,
    UnknownProviderError,
    UnsetVariableError,
)
from locus_memory.presets import (
    list_presets,
    memory_table,
    read_preset,
)
from locus_memory.probing import preferred
from locus_memory.registry import get_checkpointer, get_store, open_backend, register_store
from locus_memory.resources import backends
from locus_memory.resources.backends.base import MemoryStoreSpec
from locus_memory.testing import FakeModel

PROJECT = """
[tool.locus_memory.presets]
dev = "sqlite:./dev.db"
prod = { url = "postgresql:${LOCUS_TEST_DATABASE}", schema = "agents" }
mem = "memory"
pair = { url = "sqlite:./pair.db", state_type = "none", busy_timeout = 3.5 }

[tool.locus_memory.memory]
default_provider = "notes"

[tool.locus_memory.memory.providers.notes]
namespace = ["team", "notes"]
user_id = "ada"
options = { store = "sqlite:./notes.db" }
"""


@pytest.fixture
def project(tmp_path, monkeypatch):
    (tmp_path / "pyproject.toml").write_text(PROJECT, "utf-8")
    home = tmp_path / "home"
    (home / "locus_memory").mkdir(parents=True)
    (home / "locus_memory" / "config.toml").write_text(
        '[presets]\ndev = "memory"\nmine = "redis:${LOCUS_TEST_HOST}"\n', "utf-8"
    )
    folder = tmp_path / "src" / "deep"
    folder.mkdir(parents=True)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home))
    monkeypatch.delenv("LOCUS_TEST_DATABASE", raising=False)
    monkeypatch.chdir(folder)
    return tmp_path


def test_the_nearest_project_comes_before_the_user(project):
    assert [each.name for each in list_presets()] == ["dev", "mem", "mine", "pair", "prod"]
    assert read_preset("@dev").url == "sqlite:./dev.db"
    assert read_preset("@dev").source == str(project / "pyproject.toml")
    assert read_preset("@mine").source.endswith("config.toml")


def test_a_variable_is_read_when_it_is_needed(project, monkeypatch):
    preset = read_preset("@prod")
    with pytest.raises(UnsetVariableError, match="LOCUS_TEST_DATABASE"):
        preset.where  # noqa: B018 - it raises
    monkeypatch.setenv("LOCUS_TEST_DATABASE", "postgresql://ada:hunter2@db/app")
    assert preset.where == "postgresql:postgresql://ada:hunter2@db/app"
    assert "hunter2" not in repr(preset)
    assert preset.filled_options == {"schema": "agents"}


@pytest.mark.usefixtures("project")
async def test_a_preset_goes_wherever_a_provider_string_does():
    async with get_store("@dev") as store, open_backend("@mem") as backend:
        await store.put(("a",), "k", 1)
        await backend.store.put(("a",), "k", 1)
    async with get_checkpointer("@dev") as checkpointer:
        assert await checkpointer.list_threads() == []
    with pytest.raises(UnknownProviderError, match="did you mean 'prod'"):
        get_store("@prid")


@pytest.mark.usefixtures("project")
async def test_an_agent_and_a_memory_take_presets():
    model = FakeModel(["Hello."])
    async with Agent(model, checkpointer="@dev", memory_manager="@mem") as agent:
        result = await agent.run("Hi", "t")
        assert (result.failures, len(await agent.history("t"))) == ((), 3)
    async with get_memory_manager("@dev") as manager, get_memory_manager("local:@mem") as other:
        for each in (manager, other):
            await each.save([Memory("user", "k", "text")])
            assert len(await each.retrieve(5)) == 1


@pytest.mark.usefixtures("project")
def test_a_blocking_face_takes_a_preset():
    assert blocking("@mem").exists(("a",), "k") is False


async def test_options_of_a_preset_reach_their_part(tmp_path, monkeypatch):
    (tmp_path / "pyproject.toml").write_text(
        "[tool.locus_memory.presets]\n"
        'pair = { url = "sqlite:./pair.db", max_chain_depth = 7 }\n'
        'bad = { url = "sqlite:./pair.db", colour = 1 }\n',
        "utf-8",
    )
    monkeypatch.chdir(tmp_path)
    async with get_store("@pair"), get_checkpointer("@pair"), open_backend("@pair"):
        pass
    async with get_checkpointer("@pair", max_chain_depth=3) as checkpointer:
        assert checkpointer is not None
    for opens in (get_store, get_checkpointer, open_backend):
        with pytest.raises(ConfigurationError, match="unknown option 'colour'"):
            opens("@bad")


@pytest.mark.parametrize(
    "line",
    [
        'p = "postgresql://ada:hunter2@db/app"',
        'p = "redis://:hunter2@db"',
        'p = "postgresql://ada:${X}hunter2@db"',
        'p = "postgresql://db?user=ada&password=hunter2"',
        'p = { url = "opensearch:db", password = "hunter2" }',
        'p = { url = "opensearch:db", api_key = "hunter2" }',
        'p = { url = "memory", nested = { token = "hunter2" } }',
        'p = { url = "memory", other = "https://a:hunter2@db" }',
        'p = "postgresql:host=db password=hunter2"',
        'p = "postgresql:password = hunter2 host=db"',
        'p = "redis::hunter2@db:6379"',
        'p = "oracle:ada:hunter2@db:1521/app"',
        'p = "postgresql:${X}:hunter2@db/app"',
        'p = { url = "opensearch:db", hosts = ["https://a:hunter2@db"] }',
        'p = { url = "opensearch:db", http_auth = ["${X}", "hunter2"] }',
        'p = { url = "memory", nested = [[{ password = "hunter2" }]] }',
        'p = { url = "memory", password = 5551 }',
        'p = { url = "memory", secret_key = "hunter2" }',
        'p = { url = "memory", aws_secret_access_key = "hunter2" }',
        'p = { url = "memory", encryption_key = "hunter2" }',
        'p = "@other"',
        "p = 5",
        "p = { name = 1 }",
    ],
)
def test_a_literal_secret_or_a_wrong_preset_is_refused(line, tmp_path, monkeypatch):
    (tmp_path / "pyproject.toml").write_text(f"[tool.locus_memory.presets]\n{line}", "utf-8")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigurationError) as caught:
        list_presets()
    assert "hunter2" not in str(caught.value)


def test_what_is_no_secret_is_kept(tmp_path, monkeypatch):
    (tmp_path / "pyproject.toml").write_text(
        "[tool.locus_memory.presets]\n"
        'a = { url = "redis:db", key_prefix = "x:", password = "${P}" }\n'
        'b = "postgresql://ada:${P}@db/app?sslmode=require"\nc = "${WHOLE}"\n'
        'd = { url = "opensearch:db", http_auth = ["ada", "${P}"], max_tokens = 5 }\n'
        "e = \"postgresql:password='${P}' host=db user=ada\"\n"
        'f = "postgresql:password=${P} host=db"\ng = "oracle:ada:${P}@db:1521/app"\n'
        'h = { url = "sqlite:./a.db", encryption_key = "${P}", hosts = ["https://db:1"] }\n',
        "utf-8",
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert "".join(each.name for each in list_presets()) == "abcdefgh"


def test_a_broken_file_is_one_sentence(tmp_path, monkeypatch):
    (tmp_path / "pyproject.toml").write_text("password = hunter2 [", "utf-8")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigurationError, match="readable TOML") as caught:
        read_preset("@x")
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("tool = 1", "tool is a table"),
        ("[tool]\nlocus_memory = 5", "locus_memory is a table"),
        ('[tool.locus_memory.memory]\ndefault_provider = ["a"]', "default_provider is the name"),
    ],
)
def test_what_is_no_table_is_one_sentence(tmp_path, monkeypatch, text, says):
    """In the nearest project, and in a file that is given."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "nowhere"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").write_text(text, "utf-8")
    with pytest.raises(ConfigurationError, match=says):
        memory_table()
    if "locus_memory" in text:
        with pytest.raises(ConfigurationError, match=says):
            memory_table(store=tmp_path / "pyproject.toml")


@pytest.mark.usefixtures("project")
def test_a_spec_comes_from_the_configuration():
    spec = MemoryStoreSpec.from_config()
    assert (spec.namespace, spec.user_id) == (("team", "notes"), "ada")
    assert spec.options == {"store": "sqlite:./notes.db"}
    assert MemoryStoreSpec.from_config("notes", user_id="noor").user_id == "noor"
    for name in ("nothing", "notes "):
        with pytest.raises(KeyError):
            MemoryStoreSpec.from_config(name)
    given = {"memory": {"providers": {"x": {"agent_id": "a"}}}}
    assert MemoryStoreSpec.from_config("x", store=given).agent_id == "a"
    with pytest.raises(KeyError):
        MemoryStoreSpec.from_config(store=given)
    with pytest.raises(ConfigurationError, match="has no colour"):
        MemoryStoreSpec.from_config("x", store=given, colour=1)
    with pytest.raises(ConfigurationError, match="literal secret"):
        memory_table("x", {"memory": {"providers": {"x": {"options": {"password": "p"}}}}})


@pytest.mark.usefixtures("project")
async def test_the_first_provider_that_can_be_used_is_preferred(redis_server, monkeypatch):
    assert preferred(["@prod", "memory"]) == "memory"
    with pytest.raises(UnknownProviderError):
        preferred(["nothing", "memory"])
    with pytest.raises(ConfigurationError, match="LOCUS_TEST_DATABASE"):
        preferred(["@prod"])
    with pytest.raises(ConfigurationError, match="none was given"):
        preferred([])
    for choose in (preferred, backends.preferred):
        with pytest.raises(ConfigurationError, match="a list"):
            choose("memory")
    dead = "redis:localhost:1"
    assert preferred([dead, "memory"]) == dead
    assert preferred([dead, redis_server.url, "memory"], probe=True) == redis_server.url
    assert preferred([dead, "sqlite:./never.db"], probe=True) == "sqlite:./never.db"
    with pytest.raises(ConfigurationError, match="does not answer"):
        preferred([dead], probe=True)


def test_a_missing_driver_is_passed_over():
    def missing(_):
        raise MissingDriverError("needs an extra")

    unregister = register_store("lacking", missing)
    register = register_store("there", lambda _: InMemoryStore())
    try:
        assert preferred(["there:x", "memory"]) == "there:x"
    finally:
        unregister()
        register()
