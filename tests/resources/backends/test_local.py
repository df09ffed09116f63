"""The local backend: what it claims, the specs that it opens, and who shares what."""

from __future__ import annotations

import subprocess
import sys

import pytest

from locus_memory.backends.inmemory.store import InMemoryStore
from locus_memory.errors import (
    ConfigurationError,
    MemoryBackendNotFound,
    MemoryNotFound,
    UnknownOptionError,
    UnsupportedMemoryOp,
)
from locus_memory.resources.backends import registry
from locus_memory.resources.backends.base import MemoryBackend, MemoryStoreSpec, ScopeModel
from locus_memory.resources.backends.local import LocalMemoryBackend
from locus_memory.resources.operations import MemoryOp
from locus_memory.testing import FakeEmbedder


@pytest.fixture(autouse=True)
def registered():
    classes, default = dict(registry._classes), list(registry._default)
    yield
    registry._classes.clear()
    registry._classes.update(classes)
    registry._default[:] = default


async def test_what_is_claimed_works(tmp_path):
    file = tmp_path / "guide.md"
    file.write_text("# Boat\n\nThe mast is spruce.", "utf-8")
    claimed = LocalMemoryBackend.capabilities()
    spec = MemoryStoreSpec(options={"store": InMemoryStore(), "embedder": FakeEmbedder()})
    async with await LocalMemoryBackend().open(spec) as store:
        if claimed.supports_write:
            await store.write("memory://a/b", "The hull is oak.", wait=True)
        if claimed.supports_read and claimed.supports_l0_l1_l2:
            assert (await store.read("memory://a/b", "abstract")).data == "The hull is oak."
        if claimed.supports_list and claimed.supports_tree:
            assert (await store.list("memory://a")) == (await store.tree("memory://a", 1))
        if claimed.supports_resource_ingest:
            assert (await store.add_resource(str(file))).added == 1
        if claimed.supports_session_commit:
            said = [{"role": "user", "content": "I live in Berlin."}]
            done = await store.commit("s", said, ["memory://a/b"], wait=True)
            assert done.extracted_count == 1
        if claimed.supports_intent_search:
            assert (await store.search("hull", "s")).hits[0].score > 0
        if claimed.supports_vector_search:
            hybrid = store.resource._search.hybrid
            space = store.resource._plans.places.chunks(())
            assert await hybrid.search(space, "oak hull", mode="vector", recursive=True)
    every = [value for name, value in vars_of(claimed) if name.startswith("supports_")]
    assert all(every)


def vars_of(value):
    return [(name, getattr(value, name)) for name in value.__dataclass_fields__]


async def test_accounts_agents_and_users_are_apart():
    store, backend = InMemoryStore(), LocalMemoryBackend()
    specs = [
        {},
        {"namespace": "other"},
        {"namespace": ("other", "part")},
        {"account_id": "x"},
        {"agent_id": "x"},
        {"user_id": "x"},
        {"user_id": "x", "agent_id": "x"},
    ]
    handles = [
        (await backend.open(MemoryStoreSpec(options={"store": store}, **each))).acquire()
        for each in specs
    ]
    assert backend.store_count() == len(specs)
    assert backend.capabilities().scope_model == ScopeModel.AGENT
    for n, handle in enumerate(handles):
        assert (await handle.list()).entries == ()
        await handle.write("memory://a", str(n))
    for n, handle in enumerate(handles):
        assert (await handle.read("memory://a")).data == str(n)
        await handle.release()
    assert backend.store_count() == 0


async def test_a_string_is_opened_and_closed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    backend = LocalMemoryBackend()
    async with await backend.open() as handle:
        await handle.write("memory://a", "text")
    assert (tmp_path / ".locus" / "memory.db").is_file()
    async with await backend.open(MemoryStoreSpec(user_id="ada")) as handle:
        with pytest.raises(MemoryNotFound):
            await handle.read("memory://a")
    for options, error in (
        ({"colour": 1}, UnknownOptionError),
        ({"store": InMemoryStore(), "colour": 1}, UnknownOptionError),
        ({"store": 5}, ConfigurationError),
    ):
        with pytest.raises(error):
            await backend.open(MemoryStoreSpec(options=options))
    assert backend.store_count() == 0


def test_the_registry_knows_its_backends():
    @registry.register("empty")
    class Empty(LocalMemoryBackend):
        @classmethod
        def is_available(cls):
            return False

    assert registry.list_names() == ["local", "empty"]
    assert Empty.name == "empty"
    assert registry.get_class("empty") is Empty
    assert isinstance(registry.get("empty"), Empty)
    assert registry.get("local") is not registry.get("local")
    assert registry.is_available("local")
    assert not registry.is_available("empty")
    assert not registry.is_available("nothing")
    assert not registry.is_available(None)
    assert registry.preferred(["nothing", "empty", "local"]).name == "local"
    with pytest.raises(MemoryBackendNotFound) as caught:
        registry.preferred(["nothing", "empty"])
    assert caught.value.available == ("local",)
    assert isinstance(caught.value, LookupError)
    assert registry.current().name == "local"
    registry.set_default("empty")
    assert isinstance(registry.current(), Empty)
    for name in ("", "a b", "@x"):
        with pytest.raises(ConfigurationError):
            registry.register(name)
    with pytest.raises(MemoryBackendNotFound):
        registry.set_default("nothing")
    with pytest.raises(ConfigurationError):
        registry.register("no")(int)


async def test_a_backend_takes_only_its_operations():
    class Other(MemoryOp):
        pass

    async with await LocalMemoryBackend().open(
        MemoryStoreSpec(options={"store": InMemoryStore()})
    ) as handle:
        with pytest.raises(UnsupportedMemoryOp):
            await handle.dispatch(Other())
    assert issubclass(LocalMemoryBackend, MemoryBackend)


TOUCHES = """
import builtins, io, os, pathlib, sys
import locus_memory.resources as package
from locus_memory.resources import backends
opened = []
sys.addaudithook(lambda event, args: opened.append(args[0]) if event == "open" else None)
for package, name in [(p, n) for p in (package, backends) for n in p.__all__]:
    getattr(package, name)
names = [str(each) for each in opened]
bad = [each for each in names if each.endswith((".toml", ".db"))]
assert not bad, bad
assert not os.path.exists(".locus")
"""


@pytest.mark.slow
def test_importing_touches_no_configuration_and_no_database(tmp_path):
    (tmp_path / "pyproject.toml").write_text("broken [", "utf-8")
    done = subprocess.run(
        [sys.executable, "-c", TOUCHES], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
