from __future__ import annotations

import logging
import subprocess
import sys
import time
from functools import partial

import pytest

from locus_memory import registry
from locus_memory._internal.providers.address import Address, parse_address
from locus_memory._internal.providers.construction import known_options
from locus_memory._internal.providers.drivers import require
from locus_memory._internal.providers.installing import install_command
from locus_memory.backends.base import ComposedBackend
from locus_memory.checkpoint.base import BaseCheckpointer
from locus_memory.errors import (
    ConfigurationError,
    MissingDriverError,
    UnknownOptionError,
    UnknownProviderError,
)
from locus_memory.events import subscribe
from locus_memory.registry import (
    as_checkpointer,
    as_store,
    get_checkpointer,
    get_store,
    list_checkpointers,
    list_stores,
    open_backend,
    register_checkpointer,
    register_store,
    resolve_address,
)
from locus_memory.store.base import BaseStore

STORES = ["memory", "oci", "opensearch", "oracle", "postgresql", "redis", "sqlite"]
CHECKPOINTERS = ["file", *STORES]


@pytest.fixture(autouse=True)
def own_registrations(monkeypatch):
    monkeypatch.setattr(registry, "_stores", {})
    monkeypatch.setattr(registry, "_checkpointers", {})


PLUGINS = """
from locus_memory.registry import Provider

ACME = Provider(
    store="locus_memory.backends.inmemory.store:InMemoryStore",
    checkpointer="locus_memory.backends.inmemory.checkpoints:MemoryCheckpointer",
)
FOLDER = Provider(
    checkpointer="locus_memory.backends.file.checkpoints:FileCheckpointer", parameter="base_dir"
)
DRIVEN = Provider(store="a_driver_nobody_has:Store", extra="driven")
TEXT = "not a provider"
"""


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Install a distribution whose entry points are the given ones."""
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "acme_plugins.py").write_text(PLUGINS)

    def installed(**entries):
        folder = tmp_path / "acme-1.0.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: acme\nVersion: 1.0\n")
        lines = [f"{name} = {value}\n" for name, value in entries.items()]
        (folder / "entry_points.txt").write_text("[locus_memory.backends]\n" + "".join(lines))

    yield installed
    sys.modules.pop("acme_plugins", None)


@pytest.mark.parametrize(
    ("where", "provider", "hint"),
    [
        ("memory", "memory", None),
        ("sqlite", "sqlite", None),
        ("SQLite:./Agent.db", "sqlite", "./Agent.db"),
        ("sqlite::memory:", "sqlite", ":memory:"),
        ("sqlite:./with:colon.db", "sqlite", "./with:colon.db"),
        ("redis:host:6379", "redis", "host:6379"),
        ("redis://host:6379/0", "redis", "redis://host:6379/0"),
        ("redis:rediss://host", "redis", "rediss://host"),
        ("oci:bucket/namespace", "oci", "bucket/namespace"),
        ("oci://bucket@namespace", "oci", "oci://bucket@namespace"),
        ("file:C:\\agents", "file", "C:\\agents"),
    ],
)
def test_a_provider_string_is_a_name_and_a_hint(where, provider, hint):
    assert parse_address(where) == Address(provider, hint)


@pytest.mark.parametrize(
    ("where", "hint"),
    [
        ("memory", None),
        ("sqlite", "./locus.db"),
        ("sqlite:./agent.db", "./agent.db"),
        ("sqlite::memory:", ":memory:"),
        ("sqlite:///var/lib/agent.db", "/var/lib/agent.db"),
        ("sqlite:////var/lib/agent.db", "/var/lib/agent.db"),
        ("sqlite:///var/a%20b.db", "/var/a b.db"),
        ("sqlite:/agent.db", "/agent.db"),
        ("./agent.db", "./agent.db"),
        ("./with:colon", "./with:colon"),
        ("../up/agent", "../up/agent"),
        ("agent.db", "agent.db"),
        ("Agent.SQLite", "Agent.SQLite"),
        ("memory.sqlite3", "memory.sqlite3"),
        ("/var/lib/agent.db", "/var/lib/agent.db"),
        ("/agent.db", "/agent.db"),
        ("some folder/agent.db", "some folder/agent.db"),
        ("C:\\agents\\agent.db", "C:\\agents\\agent.db"),
        ("file:agent.db", "agent.db"),
        ("postgresql://host/agent.db", "postgresql://host/agent.db"),
        ("file", "./checkpoints"),
        ("file:./dir", "./dir"),
        ("file:///var/dir", "/var/dir"),
        ("postgresql", None),
        ("postgresql:mydb", "mydb"),
        ("postgresql:postgresql://host/db", "postgresql://host/db"),
        ("postgres://user@host/db", "postgres://user@host/db"),
        ("redis", None),
        ("redis:host:6379/2", "host:6379/2"),
        ("redis:unix:///run/redis.sock", "unix:///run/redis.sock"),
        ("rediss://host", "rediss://host"),
        ("valkey://host", "valkey://host"),
    ],
)
def test_the_hint_is_resolved(where, hint):
    address, _ = resolve_address(where)
    assert address.hint == hint


@pytest.mark.parametrize(
    "where",
    ["", ":", "sqlite:", ":hint", "./agent.db", "two words", "1st:x", None, 3, b"sqlite"],
)
def test_what_is_no_provider_string_is_refused(where):
    with pytest.raises(ConfigurationError, match=r"'provider:hint'"):
        parse_address(where)


@pytest.mark.parametrize("where", ["memory:x", "sqlite://host/a.db", "sqlite:///", "file:///d?x=1"])
def test_a_hint_that_cannot_work_is_refused(where):
    with pytest.raises(ConfigurationError):
        resolve_address(where)


@pytest.mark.parametrize("where", ["sqlite:///agent.db", "SQLite:///agent.db", "sqlite:////a.db"])
@pytest.mark.parametrize("make", [get_store, get_checkpointer, open_backend, resolve_address])
def test_a_url_that_others_take_for_a_relative_path_is_refused(make, where):
    with pytest.raises(ConfigurationError, match="right below the root") as raised:
        make(where)
    name = where.rpartition("/")[2]
    assert f"'sqlite:./{name}'" in str(raised.value)
    assert f"'sqlite:/{name}'" in str(raised.value)


@pytest.mark.parametrize("where", ["sqlit:./agent.db", "sqlit:agent.db", "agents", "x://agent.db"])
def test_a_provider_that_is_misspelt_is_no_path(where):
    with pytest.raises(UnknownProviderError):
        get_store(where)


async def test_a_path_is_a_store_a_checkpointer_and_a_backend(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    async with open_backend("./agent.db") as backend:
        await backend.store.put(("notes",), "k", 1)
    async with get_store("agent.db") as store:
        assert await store.get(("notes",), "k") == 1
    async with get_checkpointer(str(tmp_path / "agent.db")) as checkpointer:
        assert await checkpointer.list_threads() == []


def test_a_registered_name_wins_over_a_path():
    made = get_store("memory")
    unregister = register_store("my.db", lambda _: made)
    try:
        assert get_store("my.db") is made
    finally:
        unregister()


@pytest.mark.parametrize("where", ["sqlite:{}/a/b/agent.db", "{}/a/b/agent.db"])
async def test_a_typo_makes_no_tree_of_folders(tmp_path, where):
    store = get_store(where.format(tmp_path))
    with pytest.raises(ConfigurationError, match="create the folder first"):
        await store.open()
    await store.close()
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "a").mkdir()
    async with get_store(where.format(tmp_path)) as made:
        await made.put(("notes",), "k", 1)
    assert (tmp_path / "a" / "b" / "agent.db").exists()


def test_an_address_is_frozen():
    with pytest.raises(AttributeError):
        Address("memory").provider = "sqlite"


SECRETS = [
    "redis://user:s3cret@h",
    "redis://:s3cret@h:6379/0",
    "redis://u:s3cret/with@and://s3cret@h",
    "redis:user:s3cret@h",
    "postgresql:host=h password=s3cret",
    "opensearch:https://h?api_key=s3cret&x=1",
    "memory:redis://user:s3cret@h",
    "sqlite://user:s3cret@h/x.db",
    "sqlite:///x.db?password=s3cret",
    "user:s3cret@h",
    "//user:s3cret@h",
    "red is://user:s3cret@h",
]


@pytest.mark.parametrize("where", SECRETS)
def test_a_password_is_in_no_message_and_no_log(where, caplog):
    caplog.set_level(logging.DEBUG)
    for call in (get_store, get_checkpointer, open_backend, as_store, as_checkpointer):
        error: BaseException | None = None
        try:
            made = call(where)
        except ConfigurationError as caught:
            error = caught
        else:
            assert where.startswith("redis:")
            assert "s3cret" not in f"{made} {made!r}"
        while error is not None:
            assert "s3cret" not in f"{error} {error!r} {error.args}"
            error = error.__cause__ or error.__context__
    assert "s3cret" not in caplog.text


@pytest.mark.parametrize("where", SECRETS[:-2])
def test_a_password_is_in_no_repr(where):
    address = parse_address(where)
    assert "s3cret" not in f"{address} {address!r}"
    assert "***" in str(address)


def test_what_is_no_secret_is_shown():
    assert str(parse_address("redis://h:6379/0")) == "redis://h:6379/0"
    assert str(parse_address("redis:h:6379")) == "redis:h:6379"
    assert str(parse_address("memory")) == "memory"


@pytest.mark.parametrize("where", ["memory", "sqlite:{}/a.db", "sqlite::memory:"])
async def test_a_store_by_its_string_works(where, tmp_path):
    async with get_store(where.format(tmp_path)) as store:
        await store.put(("users", "u1"), "colour", "blue")
        assert await store.get(("users", "u1"), "colour") == "blue"


@pytest.mark.parametrize("where", ["memory", "file:{}/dir", "sqlite:{}/a.db", "sqlite::memory:"])
async def test_a_checkpointer_by_its_string_works(where, tmp_path):
    async with get_checkpointer(where.format(tmp_path), state_type=None) as checkpointer:
        await checkpointer.save({"n": 1}, "thread")
        assert await checkpointer.load("thread") == {"n": 1}


@pytest.mark.parametrize("where", ["memory", "sqlite:{}/a.db", "sqlite::memory:"])
async def test_a_backend_has_both(where, tmp_path):
    async with open_backend(where.format(tmp_path), state_type=None) as backend:
        assert backend.store is backend.store
        assert backend.checkpointer is backend.checkpointer
        await backend.store.put(("users",), "u1", 1)
        await backend.checkpointer.save({"n": 1}, "thread")
        assert await backend.store.get(("users",), "u1") == 1
        assert await backend.checkpointer.load("thread") == {"n": 1}


async def test_closing_a_part_leaves_the_backend_open(tmp_path):
    async with open_backend(f"sqlite:{tmp_path / 'a.db'}", state_type=None) as backend:
        await backend.store.close()
        await backend.checkpointer.save({"n": 1}, "thread")
        await backend.checkpointer.close()
        assert await backend.store.get(("users",), "u1") is None


async def test_a_backend_without_a_store_says_so(tmp_path):
    async with open_backend(f"file:{tmp_path / 'dir'}", state_type=None) as backend:
        await backend.checkpointer.save({"n": 1}, "thread")
        with pytest.raises(ConfigurationError, match="file: has no store"):
            _ = backend.store


def test_a_provider_without_a_store_names_those_that_have_one():
    with pytest.raises(ConfigurationError, match=f"have one: {', '.join(STORES)}"):
        get_store("file:./dir")


def test_an_unknown_provider_lists_the_known_ones():
    with pytest.raises(UnknownProviderError, match=f"Known: {', '.join(CHECKPOINTERS)}") as caught:
        get_store("sqlit:./a.db")
    assert "did you mean 'sqlite'?" in str(caught.value)
    assert isinstance(caught.value, LookupError)


@pytest.mark.parametrize("call", [get_store, get_checkpointer, open_backend])
def test_an_unknown_option_lists_the_known_ones(call):
    with pytest.raises(UnknownOptionError, match=r"'clok': did you mean 'clock'.*Known: .*clock"):
        call("memory", clok=None)


def test_the_hint_may_be_an_option(tmp_path):
    assert isinstance(get_store("sqlite", path=tmp_path / "a.db"), BaseStore)


def test_the_hint_given_twice_is_an_error(tmp_path):
    with pytest.raises(ConfigurationError, match="'path' is given twice"):
        get_store("sqlite:./a.db", path=tmp_path / "a.db")


async def test_an_option_that_both_parts_have_goes_to_both(tmp_path):
    def clock():
        return 86_400.0

    async with open_backend(f"sqlite:{tmp_path / 'a.db'}", clock=clock, state_type=None) as backend:
        await backend.store.put(("users",), "u1", 1)
        await backend.checkpointer.save({}, "thread")
        item = await backend.store.get_item(("users",), "u1")
        (info,) = await backend.checkpointer.list_with_metadata("thread")
    assert item.created_at.isoformat() == info.created_at.isoformat() == "1970-01-02T00:00:00+00:00"


async def test_a_connection_passed_in_stays_open(tmp_path):
    from locus_memory.backends.sqlite.connection.connection import SQLiteDatabase  # noqa: PLC0415

    database = SQLiteDatabase(tmp_path / "a.db")
    async with open_backend("sqlite", database=database) as backend:
        await backend.store.put(("a",), "k", 1)
    assert await get_store("sqlite", database=database).get(("a",), "k") == 1
    await database.close()


def test_an_option_of_the_connection_reaches_it(tmp_path):
    with pytest.raises(ConfigurationError, match="readers"):
        open_backend(f"sqlite:{tmp_path / 'a.db'}", readers=0)


@pytest.mark.slow
def test_a_backend_is_imported_on_first_use_only():
    code = """
import sys
import locus_memory.registry as registry
assert not {m for m in sys.modules if m.startswith("locus_memory.backends.")} - {
    "locus_memory.backends.base", "locus_memory.backends.providers"}
assert not {"numpy", "sqlite3", "pydantic"} & set(sys.modules)
registry.list_stores()
assert "sqlite3" not in sys.modules
registry.get_store("memory")
assert "sqlite3" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_what_a_class_hands_to_its_parent_it_knows():
    class Parent:
        def __init__(self, path, *, clock=None):
            pass

    class Child(Parent):
        def __init__(self, *, own=None, **options):
            super().__init__("x", **options)

    class Bare:
        pass

    assert known_options(Child) == {"own", "path", "clock"}
    assert known_options(Bare) == set()
    assert known_options(lambda hint, **options: None) is None


async def test_a_string_a_store_and_a_backend_are_stores():
    backend = open_backend("memory")
    made, owned = as_store("memory")
    assert isinstance(made, BaseStore)
    assert owned
    assert as_store(made) == (made, False)
    assert as_store(backend) == (backend.store, False)


async def test_a_string_a_checkpointer_and_a_backend_are_checkpointers():
    backend = open_backend("memory")
    made, owned = as_checkpointer("memory")
    assert isinstance(made, BaseCheckpointer)
    assert owned
    assert as_checkpointer(made) == (made, False)
    assert as_checkpointer(backend) == (backend.checkpointer, False)


@pytest.mark.parametrize("call", [as_store, as_checkpointer])
def test_anything_else_is_refused(call):
    with pytest.raises(ConfigurationError):
        call(42)


def memory_store(hint, **options):
    store = get_store("memory", **options)
    store.hint = hint
    return store


def memory_checkpointer(hint, **options):
    return get_checkpointer("memory", **options)


def test_a_registered_store_gets_the_hint_and_the_options():
    unregister = register_store("Mine", memory_store)
    assert get_store("mine:anything:at all", clock=time.time).hint == "anything:at all"
    assert get_store("mine").hint is None
    assert get_store("mine://u@h").hint == "mine://u@h"
    assert "mine" in list_stores()
    assert "mine" not in list_checkpointers()
    unregister()
    with pytest.raises(UnknownProviderError):
        get_store("mine")


class Factory:
    def __call__(self, **options):
        return by_name(**options)


def by_name(**options):
    return {**options, "called": "by name"}


def with_name(config_hint=None, **options):
    return {"config_hint": config_hint, **options}


def with_name_last(options=None, *, config_hint):
    return {"config_hint": config_hint}


def by_place(hint, /, **options):
    return {"config_hint": hint, **options}


def by_any_place(*arguments):
    [hint] = arguments
    return {"config_hint": hint}


class Bound:
    def make(self, **options):
        return options


@pytest.mark.parametrize(
    "factory",
    [
        by_name,
        with_name,
        with_name_last,
        by_place,
        by_any_place,
        Factory(),
        Bound().make,
        partial(by_name, table="t"),
        lambda hint: {"config_hint": hint},
    ],
)
@pytest.mark.parametrize("part", ["store", "checkpointer"])
def test_a_factory_gets_the_hint_by_its_place_or_by_its_name(part, factory, monkeypatch):
    # What the factory made is looked at, so it need not be a store.
    monkeypatch.setattr(registry, "BaseStore", dict)
    monkeypatch.setattr(registry, "BaseCheckpointer", dict)
    register, get = {
        "store": (register_store, get_store),
        "checkpointer": (register_checkpointer, get_checkpointer),
    }[part]
    register("mine", factory)
    assert get("mine:some:hint")["config_hint"] == "some:hint"
    assert get("mine").get("config_hint") is None


def test_a_factory_without_parameters_takes_no_hint():
    store = get_store("memory")
    register_store("mine", lambda: store)
    assert get_store("mine") is store
    with pytest.raises(ConfigurationError, match="mine: takes no hint"):
        get_store("mine:hint")


def test_a_factory_of_nothing_but_options_is_told_of_no_hint_that_is_not_there():
    register_store("mine", lambda **options: get_store("memory", **options))
    assert type(get_store("mine", embedding_dimension=3)).__name__ == "InMemoryStore"


def test_a_type_error_of_a_factory_is_its_own():
    def factory(**options):
        raise TypeError("its own")

    register_store("mine", factory)
    with pytest.raises(TypeError, match="its own"):
        get_store("mine:hint")


def test_a_registered_name_wins_over_a_built_in_one():
    unregister = register_store("sqlite", memory_store)
    assert type(get_store("sqlite:x")).__name__ == "InMemoryStore"
    unregister()
    assert type(get_store("sqlite:x")).__name__ == "SQLiteStore"


async def test_registered_parts_make_a_backend():
    register_store("mine", memory_store)
    register_checkpointer("mine", memory_checkpointer)
    async with open_backend("mine:hint") as backend:
        assert isinstance(backend, ComposedBackend)
        await backend.store.put(("a",), "k", 1)
        assert await backend.checkpointer.load("thread") is None


async def test_a_registered_part_alone_makes_half_a_backend():
    register_store("mine", memory_store)
    async with open_backend("mine") as backend:
        await backend.store.put(("a",), "k", 1)
        with pytest.raises(ConfigurationError, match="mine: has no checkpoints"):
            _ = backend.checkpointer
    with pytest.raises(ConfigurationError, match="mine: has no checkpointer"):
        get_checkpointer("mine")


def test_a_factory_that_makes_something_else_is_named():
    register_store("mine", lambda hint, **options: object())
    with pytest.raises(ConfigurationError, match="mine: made a object, not a BaseStore"):
        get_store("mine")


@pytest.mark.parametrize("name", ["", "a:b", "a b", "ü", None])
def test_a_name_that_no_string_can_spell_is_refused(name):
    with pytest.raises(ConfigurationError):
        register_store(name, memory_store)


async def test_a_plugin_is_found_by_its_name(install):
    install(acme="acme_plugins:ACME")
    assert list_stores() == ["acme", *STORES]
    async with open_backend("acme", state_type=None) as backend:
        await backend.store.put(("a",), "k", 1)
        await backend.checkpointer.save({"n": 1}, "thread")
        assert await backend.checkpointer.load("thread") == {"n": 1}


async def test_a_plugin_with_checkpoints_only(install, tmp_path):
    install(folder="acme_plugins:FOLDER")
    assert "folder" in list_checkpointers()
    assert "folder" not in list_stores()
    async with get_checkpointer(f"folder:{tmp_path / 'dir'}", state_type=None) as checkpointer:
        await checkpointer.save({"n": 1}, "thread")
    assert (tmp_path / "dir").is_dir()


@pytest.mark.parametrize("value", ["acme_plugins:MISSING", "no_such_module:X", "acme_plugins:TEXT"])
def test_a_broken_plugin_breaks_no_other(install, value):
    install(acme="acme_plugins:ACME", broken=value)
    events = []
    unsubscribe = subscribe(events.append)
    assert list_stores() == ["acme", *STORES]
    unsubscribe()
    assert [(e.name, e.attributes["provider"]) for e in events] == [
        ("registry.plugin_failed", "broken")
    ]
    assert isinstance(get_store("acme"), BaseStore)
    with pytest.raises(ConfigurationError, match="broken: its plugin"):
        get_store("broken")
    with pytest.raises(UnknownProviderError, match=f"Known: acme, {', '.join(CHECKPOINTERS)}"):
        get_store("nobody")


def test_a_built_in_provider_cannot_be_taken_over(install):
    install(sqlite="acme_plugins:ACME")
    assert type(get_store("sqlite:x")).__name__ == "SQLiteStore"


def test_known_providers_load_no_plugin(install):
    install(broken="no_such_module:X")
    events = []
    unsubscribe = subscribe(events.append)
    get_store("memory")
    unsubscribe()
    assert events == []


def test_a_missing_driver_is_one_sentence(install):
    install(driven="acme_plugins:DRIVEN")
    with pytest.raises(MissingDriverError) as caught:
        get_store("driven")
    expected = f"driven: needs the 'driven' extra: {install_command('driven')}"
    assert str(caught.value) == expected
    assert isinstance(caught.value, ImportError)


def test_require_returns_the_module():
    assert require("json", "json").dumps([1]) == "[1]"


def test_require_names_what_needs_it():
    with pytest.raises(MissingDriverError, match=r"^locus-memory: needs the 'cli' extra"):
        require("a_library_nobody_has", "cli", needed_by="locus-memory")


async def test_options_of_a_part_reach_it_by_either_way(tmp_path):
    where = f"sqlite:{tmp_path / 'a.db'}"
    async with open_backend(
        where, store_options={"clock": lambda: 86_400.0}, max_chain_depth=3
    ) as backend:
        await backend.store.put(("n",), "k", 1)
        item = await backend.store.get_item(("n",), "k")
        assert item.created_at.isoformat() == "1970-01-02T00:00:00+00:00"
        assert backend.checkpointer.max_chain_depth == 3
