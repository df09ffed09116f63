from __future__ import annotations

import json

import pytest

from locus_memory.backends.inmemory import InMemoryStore
from locus_memory.backends.sqlite import SQLiteStore
from locus_memory.errors import ConfigurationError, InvalidArgumentError, InvalidEmbeddingError
from locus_memory.retrieval.embedders.marks import (
    MARK,
    EmbeddingMark,
    check_marks,
    mark_of,
    marked,
    unmarked,
)
from locus_memory.store.item import Delete, Put
from locus_memory.store.wrappers import EmbeddingStore, EncryptingStore
from locus_memory.testing import FakeEmbedder

NS = ("notes",)


class OtherEmbedder(FakeEmbedder):
    """Another model with vectors of the same length."""

    def __init__(self, dimension=64):
        super().__init__(dimension)
        self.name = f"other-{dimension}"


@pytest.fixture(params=["memory", "sqlite"])
async def inner(request, tmp_path):
    made = InMemoryStore() if request.param == "memory" else SQLiteStore(tmp_path / "a.db")
    async with made as store:
        yield store


@pytest.fixture
def semantic(inner):
    return EmbeddingStore(inner, FakeEmbedder())


def test_marks_come_back():
    for mark in (EmbeddingMark("m", 3), EmbeddingMark("m", 3, "", "s"), EmbeddingMark("m", 3, "t")):
        written = marked({"kind": "x"}, mark)
        assert mark_of(json.loads(json.dumps(written))) == mark
        assert unmarked(written) == {"kind": "x"}
    for strange in ({}, {MARK: None}, {MARK: 5}, {MARK: {"model": "m"}}, {MARK: []}):
        assert mark_of(strange) is None


async def test_a_mark_is_stored_with_the_vector_and_not_seen(inner, semantic):
    await semantic.put(NS, "a", "a fox", {"kind": "x"})
    await semantic.put_batch([(NS, "b", "a dog"), Put(namespace=NS, key="c", value=1, text="cat")])
    await semantic.write_batch(
        [Put(namespace=NS, key="d", value="owl"), Delete(namespace=NS, key="z")]
    )
    await semantic.put(NS, "e", 5)
    await semantic.put_with_embedding(NS, "f", "own", [1.0] * 64)
    marks = {item.key: mark_of(item.metadata) for item in await inner.scan(NS)}
    plain = EmbeddingMark("fake-64", 64)
    assert marks == {
        "a": plain,
        "b": plain,
        "c": EmbeddingMark("fake-64", 64, "cat"),
        "d": plain,
        "e": None,
        "f": None,
    }
    seen = [
        await semantic.get_item(NS, "a"),
        *await semantic.scan(NS),
        *await semantic.search(NS, "fox dog cat owl"),
        *await semantic.search(NS),
        *(hit.item for hit in await semantic.search_by_embedding(NS, [1.0] * 64)),
    ]
    assert all(MARK not in item.metadata for item in seen)
    assert seen[0].metadata == {"kind": "x"}
    assert [item.key for item in await semantic.search(NS, filter={"kind": "x"})] == ["a"]


async def test_vectors_of_another_model_are_not_searched(inner, semantic):
    await semantic.put((*NS, "below"), "a", "a fox")
    other = EmbeddingStore(inner, OtherEmbedder())
    with pytest.raises(ConfigurationError, match=r"are of fake-64 .*of other-64 .*reembed"):
        await other.search((*NS, "below"), "fox")
    with pytest.raises(ConfigurationError, match="locus-memory reembed"):
        await other.search(NS, "fox", recursive=True)
    assert await other.search(("elsewhere",), "fox") == []


async def test_vectors_of_another_model_are_not_added_to(inner, semantic):
    await semantic.put(NS, "a", "a fox")
    other = EmbeddingStore(inner, OtherEmbedder())
    for write in (
        other.put(NS, "b", "a dog"),
        other.put_batch([(("fine",), "b", "a dog"), (NS, "b", "a dog")]),
        other.write_batch([Put(namespace=NS, key="b", value="a dog")]),
    ):
        with pytest.raises(ConfigurationError, match="are of fake-64"):
            await write
    assert [item.key for item in await inner.scan(NS)] == ["a"]
    assert await inner.list_namespaces() == [NS]
    await other.put(NS, "plain", 5)
    await other.put(("fine",), "b", "a dog")
    await semantic.delete(NS, "a")
    await other.put(NS, "b", "a dog")
    assert [item.key for item in await other.search(NS, "dog")] == ["b"]


async def test_another_length_names_both_models(inner, semantic):
    await semantic.put(NS, "a", "a fox")
    other = EmbeddingStore(inner, OtherEmbedder(8))
    with pytest.raises(ConfigurationError, match=r"fake-64 \(64 .*other-8 \(8\)"):
        await other.search(NS, "fox")


async def test_vectors_of_unknown_origin_are_left_to_the_store(inner):
    await inner.put_with_embedding(NS, "a", "a fox", [1.0] * 8)
    semantic = EmbeddingStore(inner, FakeEmbedder())
    with pytest.raises(InvalidEmbeddingError):
        await semantic.search(NS, "fox")
    await EmbeddingStore(inner, FakeEmbedder(8)).search(NS, "fox")


async def test_a_namespace_is_asked_about_once(inner):
    class Watched(InMemoryStore):
        searches = 0

        async def search(self, *args, **kwargs):
            self.searches += 1
            return await super().search(*args, **kwargs)

    store = Watched()
    semantic = EmbeddingStore(store, FakeEmbedder())
    for n in range(5):
        await semantic.put(NS, str(n), "a fox")
    assert store.searches == 1


async def test_a_text_is_not_kept_where_the_store_must_not_see_it():
    inner = InMemoryStore()
    vault = EmbeddingStore(EncryptingStore(inner, {"k": b"k" * 16}, active="k"), FakeEmbedder())
    await vault.put(NS, "a", {"secret": "hunter2"}, text="hunter2 fox")
    [item] = await inner.scan(NS)
    assert mark_of(item.metadata) is None
    assert "hunter2" not in json.dumps(item.to_dict())
    known = await vault.inner.get_item(NS, "a")
    assert mark_of(known.metadata) == EmbeddingMark("fake-64", 64, "hunter2 fox")
    assert [hit.key for hit in await vault.search(NS, "fox")] == ["a"]


async def test_bad_metadata_is_refused_before_the_model_is_asked(semantic):
    with pytest.raises(InvalidArgumentError):
        await semantic.put(NS, "a", "a fox", ["no", "object"])
    assert semantic._embedder.calls == []


async def test_only_marked_items_are_checked(inner):
    await inner.put(NS, "a", 1, {"x": 1})
    check_marks(await inner.scan(NS), FakeEmbedder(), NS)
