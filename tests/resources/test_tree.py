"""A tree among the other parts of the library: forgetting, other stores, and what is shared."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import pytest

from locus_memory.backends.inmemory.store import InMemoryStore
from locus_memory.backends.sqlite.store import SQLiteStore
from locus_memory.errors import (
    ConfigurationError,
    InvalidArgumentError,
    InvalidMemoryURI,
    MemoryConflict,
    MemoryNotFound,
    UnsupportedMemoryOp,
)
from locus_memory.memory.forgetting.forget import forget
from locus_memory.memory.manager import LLMMemoryManager
from locus_memory.memory.models import Memory
from locus_memory.resources.storing.nodes import FOLDER
from locus_memory.resources.tree import MemoryTree
from locus_memory.store.item import StoreCapabilities
from locus_memory.store.wrappers import EncryptingStore
from locus_memory.store.wrappers.base import StoreWrapper
from locus_memory.sync import blocking
from locus_memory.testing import FakeClock, FakeEmbedder


class Plain(StoreWrapper):
    """A store without transactions."""

    @property
    def capabilities(self):
        return StoreCapabilities(search=True, semantic_search=True, list_namespaces=True)

    async def write_batch(self, operations):
        self._unsupported("transactions")


async def test_forgetting_a_user_erases_their_tree():
    store = InMemoryStore()
    tree = MemoryTree(store, embedder=FakeEmbedder())
    for each in (tree, tree.for_user("ada"), tree.for_user("noor")):
        await each.write("memory://a/b", "text", wait=True)
        await each.write("memory://a/b", "more", wait=True)
        await each.commit("s", [{"role": "user", "content": "I live in Rome."}], wait=True)
    await forget(store, user_id="ada")
    left = await store.list_namespaces(limit=999)
    assert not [each for each in left if "ada" in each]
    assert (await tree.for_user("ada").list()).entries == ()
    for each in (tree, tree.for_user("noor")):
        assert len((await each.tree(depth=9)).entries) == 8


async def test_an_encrypted_tree_reads_as_any_other():
    inner = InMemoryStore()
    store = EncryptingStore(inner, {"k": bytes(32)}, active="k")
    tree = MemoryTree(store)
    await tree.write("memory://a/b", "the zeppelin")
    assert (await tree.read("memory://a/b")).data == "the zeppelin"
    for space in await inner.list_namespaces(limit=99):
        for item in await inner.scan(space):
            assert "zeppelin" not in repr(item.value)


async def test_a_tree_shares_the_memories_of_an_agent():
    store = InMemoryStore()
    manager = LLMMemoryManager(store)
    await manager.for_user("ada").save([Memory("user", "a/b", "Ada sails a zeppelin.")])
    tree = MemoryTree(store, user_id="ada")
    listed = (await tree.list("memory://memories/user")).entries
    assert [each.uri for each in listed] == ["memory://memories/user/a%2Fb"]
    assert (await tree.find("zeppelin")).hits[0].uri == listed[0].uri
    assert (await tree.find("zeppelin", "memory://memories/user")).hits
    assert (await tree.find("zeppelin", "memory://memories/project")).hits == ()
    assert (await MemoryTree(store).find("zeppelin")).hits == ()
    other = MemoryTree(store, prefix=("other",), user_id="ada")
    assert (await other.find("zeppelin")).hits == ()
    own = MemoryTree(store, prefix=("other",), user_id="ada", memory_manager=manager)
    assert len((await own.find("zeppelin")).hits) == 1


async def test_a_prefix_of_a_memory_manager_is_no_problem():
    store = InMemoryStore()
    manager = LLMMemoryManager(store)
    tree = MemoryTree(store, prefix=("locus_memory",), memory_manager=manager)
    said = [{"role": "user", "content": "I live in Rome."}]
    for _ in range(2):
        assert (await tree.commit("s", said, wait=True)).extracted_count in (0, 1)
    await tree.write("memory://user/home", "one")
    await tree.write("memory://user/home", "two")
    assert len(await manager.history("home", "user")) == 1
    assert len((await tree.history("memory://user/home")).versions) == 2


async def test_without_transactions_a_killed_writer_leaves_no_folder_behind():
    store = Plain(InMemoryStore())
    tree = MemoryTree(store)
    await store.put(("memory", "tree"), "a", dict(FOLDER))
    await store.put(("memory", "tree", "a"), "b", dict(FOLDER))
    await tree.write("memory://c/d", "text")
    assert [each.name for each in (await tree.list()).entries] == ["c"]
    await tree.write("memory://a", "now an entry")
    assert (await tree.read("memory://a")).data == "now an entry"
    await tree.delete("memory://c/d")
    await tree.move("memory://a", "memory://e/f")
    assert [each.uri for each in (await tree.tree()).entries] == ["memory://e/", "memory://e/f"]
    names = ["memory://n", "memory://n/x", "memory://n/y/z"]
    for _ in range(5):
        done = await asyncio.gather(
            *(tree.write(each, each) for each in names), return_exceptions=True
        )
        there = {each.uri for each in (await tree.tree(depth=9)).entries}
        assert not ("memory://n" in there and "memory://n/" in there)
        for uri, result in zip(names, done, strict=True):
            assert (uri in there) is not isinstance(result, BaseException)
            if uri in there:
                await tree.delete(uri)


async def test_vectors_are_stored_without_transactions_too():
    store = Plain(InMemoryStore())
    tree = MemoryTree(store, embedder=FakeEmbedder())
    await tree.write("memory://a", "the mast is spruce", wait=True)
    assert await store.get_embedding(("memory", "chunks", "a"), "00000000")
    assert await tree.drain() == 0


async def test_an_archive_holds_no_secret():
    tree = MemoryTree(InMemoryStore())
    said = [
        {"role": "user", "content": "My password is hunter2-and-more."},
        {"role": "user", "content": "The mast\ud800 is spruce."},
    ]
    done = await tree.commit("s", said)
    archived = str((await tree.read(str(done.archived_uri))).data)
    assert "hunter2" not in archived
    assert "(left out" in archived
    assert "The mast? is spruce." in archived
    record, _ = await tree._sessions.record("s")
    assert record.said == ("The mast? is spruce.",)


async def test_two_commits_at_once_archive_once():
    tree = MemoryTree(InMemoryStore(), clock=FakeClock())
    said = [{"role": "user", "content": "I live in Rome."}]
    done = await asyncio.gather(*(tree.commit("s", said) for _ in range(5)))
    assert len([each for each in done if each.archived_uri]) == 1
    for n in range(3):
        said.append({"role": "user", "content": f"More {n}."})
        assert (await tree.commit("s", said)).archived_uri
    archived = (await tree.list("memory://sessions/s")).entries
    assert len(archived) == 4
    assert archived[0].name == "20231114T221320.000000Z"
    assert (await tree.commit("s", [], used_uris=["memory://a"])).archived_uri is None
    await tree.close()


async def test_a_moment_of_a_version_is_that_of_the_clock(tmp_path):
    clock = FakeClock()
    async with SQLiteStore(tmp_path / "t.db") as store:
        tree = MemoryTree(store, clock=clock)
        await tree.write("memory://a", "one")
        clock.advance(60)
        await tree.write("memory://a", "two")
        await tree.write("memory://a", "two")
        versions = (await tree.history("memory://a")).versions
        assert [each.version for each in versions] == [2, 1]
        moment = datetime.fromtimestamp(clock(), UTC)
        assert (versions[0].written_at, versions[0].size) == (moment, 3)


def test_a_blocking_face_of_a_string(tmp_path):
    with blocking(MemoryTree(f"sqlite:{tmp_path / 'tree.db'}")) as tree:
        tree.write("memory://a/b", "text", wait=True)
        assert tree.for_user("ada").list().entries == ()
        assert tree.read("memory://a/b").data == "text"
    with blocking(MemoryTree(f"sqlite:{tmp_path / 'tree.db'}")) as tree:
        assert tree.read("memory://a/b").version == 1


def test_options_that_cannot_work():
    for options, error in (
        ({"prefix": "memory"}, InvalidArgumentError),
        ({"prefix": ()}, InvalidArgumentError),
        ({"user_id": ""}, InvalidArgumentError),
        ({"model": "gpt"}, ConfigurationError),
        ({"embedder": 5}, Exception),
        ({"clock": 5}, Exception),
    ):
        with pytest.raises(error):
            MemoryTree(InMemoryStore(), **options)
    with pytest.raises(InvalidArgumentError):
        MemoryTree(InMemoryStore()).for_user("")


async def test_nothing_comes_below_memories_from_the_side(tmp_path):
    """By the move of a folder, or by files: it could be neither read nor deleted there."""
    folder = tmp_path / "memories"
    folder.mkdir()
    (folder / "boat.md").write_text("The mast is spruce.")
    (tmp_path / "log.md").write_text("High water at noon.")
    async with MemoryTree(InMemoryStore()) as tree:
        await tree.write("memory://old/log", "A calm day.")
        await tree.write("memory://old/memories/boat", "She leaks.")
        with pytest.raises(UnsupportedMemoryOp):
            await tree.move("memory://old", "memory://")
        assert len((await tree.tree("memory://old")).entries) == 3
        done = await tree.add_resource(str(tmp_path), "memory://")
        assert (done.added, [path for path, _ in done.skipped]) == (1, ["memories/boat.md"])
        assert (await tree.find("mast")).hits == ()


async def test_a_folder_that_does_not_fit_moves_not_at_all():
    """An entry of it would have too many segments."""
    deep = "memory://" + "/".join(["d"] * 60)
    async with MemoryTree(InMemoryStore()) as tree:
        await tree.write("memory://old/log", "A calm day.")
        await tree.write("memory://old/1/2/3/4/5/boat", "She leaks.")
        with pytest.raises(InvalidMemoryURI):
            await tree.move("memory://old", deep)
        assert (await tree.read("memory://old/log")).data == "A calm day."


@pytest.mark.parametrize("taken", ["new/m", "new/m/log", "new/m/log/day"])
async def test_a_folder_whose_place_is_taken_moves_not_at_all(taken):
    """An entry of it would meet another one, or a folder."""
    async with MemoryTree(InMemoryStore()) as tree:
        await tree.write(f"memory://{taken}", "She leaks.")
        for name in ("a", "m/log", "z/boat"):
            await tree.write(f"memory://old/{name}", "A calm day.")
        before = await tree.tree("memory://", 9)
        with pytest.raises(MemoryConflict):
            await tree.move("memory://old", "memory://new")
        assert await tree.tree("memory://", 9) == before


async def test_a_folder_moves_to_where_its_own_entries_were():
    """They have moved away by then."""
    async with MemoryTree(InMemoryStore()) as tree:
        for name in ("b/log", "b/b/log"):
            await tree.write(f"memory://a/{name}", name)
        assert (await tree.move("memory://a/b", "memory://a")).moved == 2
        assert (await tree.read("memory://a/log")).data == "b/log"
        assert (await tree.read("memory://a/b/log")).data == "b/b/log"


@pytest.mark.parametrize(
    "messages",
    [
        [{"role": "user", "content": "", "parts": [{"text": "She leaks."}]}],
        [{"role": "user", "content": None, "parts": [{"text": "She leaks."}]}],
        [{"role": "user", "parts": "She leaks."}],
        {"role": "user", "parts": ["She leaks."]},
        "She leaks.",
    ],
)
async def test_what_was_said_is_archived_in_any_shape(messages):
    """An empty content beside parts, and a message that is no list, are as said."""
    async with MemoryTree(InMemoryStore()) as tree:
        done = await tree.commit("s", messages)
        assert (await tree.read(done.archived_uri)).data == "**user**: She leaks."


@pytest.mark.parametrize("used", [["memory:///x/t%77o"], "memory://x/two"])
async def test_what_a_session_used_ranks_higher_however_it_is_written(used):
    """Two texts of one URI are the same."""
    async with MemoryTree(InMemoryStore()) as tree:
        for name in ("one", "two", "three"):
            await tree.write(f"memory://x/{name}", "The harbour opens at dawn.")
        with pytest.raises(InvalidMemoryURI):
            await tree.commit("s", [], used_uris=["x/two"])
        await tree.commit("s", [{"role": "user", "content": "I sail alone."}], used)
        assert (await tree.search("harbour", "s", "memory://x")).hits[0].uri == "memory://x/two"


async def test_a_folder_has_no_history():
    """Nor has an entry whose URI says that it is a folder."""
    async with MemoryTree(InMemoryStore()) as tree:
        await tree.write("memory://notes/boat", "She leaks.")
        for uri in ("memory://notes", "memory://notes/", "memory://notes/boat/"):
            with pytest.raises(MemoryNotFound):
                await tree.history(uri)
