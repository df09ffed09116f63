from __future__ import annotations

import asyncio
import inspect
import json
import sys
from dataclasses import fields

import pytest

from locus_memory.backends.inmemory import InMemoryStore
from locus_memory.errors import (
    BackendClosedError,
    ConfigurationError,
    EncryptionError,
    InvalidEmbeddingError,
    MissingDriverError,
    StoreCapabilityError,
    ValueNotSerializableError,
)
from locus_memory.retrieval.embedders.base import Embedder
from locus_memory.store.base import BaseStore
from locus_memory.store.item import Delete, Put, StoreCapabilities
from locus_memory.store.text import index_text
from locus_memory.store.wrappers import (
    EmbeddingStore,
    EncryptingStore,
    StoreWrapper,
    encrypting,
)
from locus_memory.testing import FakeClock, FakeEmbedder

NS = ("vault",)
OLD, NEW = {"old": b"o" * 16}, {"new": b"n" * 32}


class BareStore(StoreWrapper):
    """A store that can do little."""

    capabilities = StoreCapabilities()


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture
def inner(clock):
    return InMemoryStore(clock=clock)


@pytest.fixture
def vault(inner, clock):
    return EncryptingStore(inner, OLD, active="old", clock=clock)


@pytest.fixture
def both(inner, clock):
    """A store over the same items, whose active key is the new one."""
    return EncryptingStore(inner, OLD | NEW, active="new", clock=clock)


def test_a_wrapper_forwards_every_verb():
    for name, verb in vars(BaseStore).items():
        if not name.startswith("_") and inspect.iscoroutinefunction(verb):
            assert name in vars(StoreWrapper), name
            assert inspect.signature(getattr(StoreWrapper, name)) == inspect.signature(verb)


async def test_closing_a_wrapper_closes_the_store(inner):
    async with StoreWrapper(inner) as wrapper:
        await wrapper.put(NS, "k", 1)
    with pytest.raises(BackendClosedError):
        await inner.get(NS, "k")


async def test_the_inner_store_never_sees_a_value(inner, vault):
    secret = {"password": "hunter2", "list": ["hunter2"]}
    await vault.put(NS, "a", secret, {"open": "book"}, text="hunter2")
    await vault.put_with_embedding(NS, "b", secret, [1.0, 0.0], text="hunter2")
    await vault.put_batch([(NS, "c", secret), Put(namespace=NS, key="d", value=1, text="hunter2")])
    await vault.write_batch([Put(namespace=NS, key="e", value=secret, text="hunter2")])
    items = await inner.scan(NS)
    assert [item.key for item in items] == list("abcde")
    assert "hunter2" not in json.dumps([item.to_dict() for item in items])
    assert items[0].metadata == {"open": "book"}
    assert await inner.search(NS, "hunter2 old password") == []
    assert await vault.get(NS, "a") == secret


PUT = {
    "namespace": NS,
    "key": "k",
    "value": "secret",
    "metadata": {"m": 1},
    "ttl": 60.0,
    "if_version": 0,
    "text": "words",
    "embedding": [1.0, 0.0],
}


class Recording(StoreWrapper):
    """A store that remembers the arguments of its puts by their names."""

    def __init__(self, store):
        super().__init__(store)
        self.puts = []

    async def put_with_embedding(self, *args, **options):
        call = inspect.signature(BaseStore.put_with_embedding).bind(self, *args, **options)
        self.puts.append({name: call.arguments[name] for name in PUT})
        return 1

    async def put_batch(self, items):
        self.puts += [{name: getattr(each, name) for name in PUT} for each in items]
        return [1]

    write_batch = put_batch


@pytest.mark.parametrize("verb", ["put_with_embedding", "put_batch", "write_batch"])
async def test_every_field_of_a_put_reaches_the_inner_store(inner, verb):
    assert PUT.keys() == {each.name for each in fields(Put)}
    recording = Recording(inner)
    sealing = getattr(EncryptingStore(recording, OLD, active="old"), verb)
    await (sealing(**PUT) if verb == "put_with_embedding" else sealing([Put(**PUT)]))
    (put,) = recording.puts
    assert "aes_gcm" in put["value"]
    assert put == PUT | {"value": put["value"], "text": ""}


async def test_no_vector_is_no_plain_put(inner, vault):
    with pytest.raises(InvalidEmbeddingError):
        await vault.put_with_embedding(NS, "k", 1, None)
    assert not await inner.exists(NS, "k")


async def test_equal_values_are_encrypted_unlike(inner, vault):
    await vault.put_batch([(NS, str(n), "same") for n in range(50)])
    assert len({json.dumps(item.value) for item in await inner.scan(NS)}) == 50


async def test_words_are_searched_up_to_a_number_of_items(inner, vault, monkeypatch):
    monkeypatch.setattr(encrypting, "MOST_SEARCHED", 3)
    assert vault.capabilities.search
    await vault.put_batch([(NS, str(n), f"fox {n}") for n in range(3)])
    assert len(await vault.search(NS, "foxes")) == 3
    await vault.put((*NS, "below"), "deep", "another fox")
    assert len(await vault.search(NS, "fox")) == 3
    with pytest.raises(StoreCapabilityError, match="at most 3 encrypted items") as caught:
        await vault.search(NS, "fox", recursive=True)
    assert caught.value.capability == "search"


async def test_the_text_of_a_put_is_found_and_stays_through_a_rotation(inner, vault, both, clock):
    await vault.put(NS, "a", "walnut", text="hazel")
    await vault.put(NS, "b", "walnut", text="")
    await vault.put(NS, "c", "walnut", ttl=60)
    for _ in range(2):
        assert [item.key for item in await both.search(NS, "hazel")] == ["a"]
        (found,) = await both.search(NS, "walnut")
        assert (found.key, found.expires_at.timestamp()) == ("c", clock() + 60)
        await both.rotate(NS)
    clock.advance(60)
    assert await both.search(NS, "walnut") == []


async def test_words_are_found_in_all_that_the_inner_store_has(inner, vault, clock):
    """A server's clock may be behind that of this process, and decides what has expired."""
    await vault.put(NS, "a", "walnut", ttl=60)
    ahead = EncryptingStore(inner, OLD, active="old", clock=lambda: clock() + 3600)
    assert [item.key for item in await ahead.search(NS, "walnut")] == ["a"]
    assert await ahead.search(NS, "walnut") == await vault.search(NS, "walnut")


@pytest.mark.parametrize(
    ("namespace", "key"), [(NS, "other"), (("vault2",), "k"), ((*NS, "x"), "k")], ids=repr
)
async def test_a_moved_value_is_refused(inner, vault, namespace, key):
    await vault.put(NS, "k", "secret")
    await inner.put(namespace, key, await inner.get(NS, "k"))
    for call in (
        vault.get(namespace, key),
        vault.get_item(namespace, key),
        vault.scan(namespace),
        vault.search(namespace),
        vault.get_batch([(namespace, key)]),
    ):
        with pytest.raises(EncryptionError, match="altered, moved"):
            await call
    assert await vault.get(NS, "k") == "secret"


async def test_an_altered_value_is_refused(inner, vault):
    await vault.put(NS, "k", "secret")
    envelope = await inner.get(NS, "k")
    data = envelope["aes_gcm"]
    flipped = data[:-4] + ("AAAA" if data[-4:] != "AAAA" else "BBBB")
    for changed in (flipped, data[:8], data[:-4], ""):
        await inner.put(NS, "k", envelope | {"aes_gcm": changed})
        with pytest.raises(EncryptionError):
            await vault.get(NS, "k")


@pytest.mark.parametrize(
    "plain",
    [
        "text",
        None,
        5,
        {},
        [1],
        {"key_id": "old"},
        {"key_id": "old", "aes_gcm": "!"},
        {"key_id": "old", "aes_gcm": "é"},
    ],
    ids=repr,
)
async def test_a_value_in_the_clear_is_refused(inner, vault, plain):
    await inner.put(NS, "k", plain)
    with pytest.raises(EncryptionError, match="is not encrypted"):
        await vault.get(NS, "k")


async def test_another_key_is_refused(inner, vault, clock):
    await vault.put(NS, "k", "secret")
    with pytest.raises(EncryptionError, match="needs the key 'old'"):
        await EncryptingStore(inner, NEW, active="new").get(NS, "k")
    impostor = EncryptingStore(inner, {"old": b"x" * 16}, active="old")
    with pytest.raises(EncryptionError) as caught:
        await impostor.get(NS, "k")
    assert "secret" not in str(caught.value)


async def test_rotation(inner, vault, both, clock):
    await vault.put(NS, "plain", 1, {"m": 1})
    await vault.put_with_embedding(NS, "vector", 2, [3.0, 4.0])
    await vault.put(NS, "passing", 3, ttl=60)
    await vault.put((*NS, "below"), "deep", 4)
    await both.put(NS, "fresh", 5)
    created = (await vault.get_item(NS, "plain")).created_at
    clock.advance(20)
    assert await both.get(NS, "plain") == 1
    assert await both.rotate(NS) == 3
    assert await both.rotate(NS) == 0
    only_new = EncryptingStore(inner, NEW, active="new", clock=clock)
    found = {item.key: item for item in await only_new.scan(NS)}
    assert {key: item.value for key, item in found.items()} == {
        "plain": 1,
        "vector": 2,
        "passing": 3,
        "fresh": 5,
    }
    assert found["plain"].metadata == {"m": 1}
    assert found["plain"].created_at == created
    assert found["plain"].version == 2
    assert found["fresh"].version == 1
    assert await only_new.get_embedding(NS, "vector") == pytest.approx([0.6, 0.8])
    clock.advance(40)
    assert not await only_new.exists(NS, "passing")
    assert await both.rotate(NS, recursive=True) == 1
    assert await only_new.get((*NS, "below"), "deep") == 4


class RacingStore(StoreWrapper):
    """Lets somebody else write, once, just before a batch is written."""

    race = None

    async def put_batch(self, items):
        race, self.race = self.race, None
        if race is not None:
            await race()
        return await super().put_batch(items)


async def test_rotation_loses_no_concurrent_write(inner, vault, clock):
    racing = RacingStore(inner)
    both = EncryptingStore(racing, OLD | NEW, active="new", clock=clock)
    await vault.put(NS, "k", "old")
    racing.race = lambda: vault.put(NS, "k", "written meanwhile")
    assert await both.rotate(NS) == 1
    assert await EncryptingStore(inner, NEW, active="new").get(NS, "k") == "written meanwhile"
    await vault.put(NS, "k", "old again")
    racing.race = lambda: vault.delete(NS, "k")
    assert await both.rotate(NS) == 0
    assert not await inner.exists(NS, "k")


async def test_rotation_passes_over_an_item_that_was_made_again(inner, vault, clock):
    class Slow(StoreWrapper):
        """Everything is deleted and put again while a vector is read."""

        async def get_embedding(self, namespace, key):
            if await vault.get(namespace, key) == "old":
                await vault.delete(namespace, key)
                await vault.put(namespace, key, "made again")
            return await super().get_embedding(namespace, key)

    both = EncryptingStore(Slow(inner), OLD | NEW, active="new", clock=clock)
    await vault.put_batch([(NS, "a", "old"), (NS, "b", "old")])
    assert await both.rotate(NS) == 2
    only_new = EncryptingStore(inner, NEW, active="new", clock=clock)
    assert [item.value for item in await only_new.scan(NS)] == ["made again"] * 2


async def test_rotation_says_what_it_could_not_see_coming(inner, vault, clock):
    racing = RacingStore(inner)
    both = EncryptingStore(racing, OLD | NEW, active="new", clock=clock)
    await vault.put(NS, "k", "old")

    async def make_again():
        await vault.delete(NS, "k")
        clock.advance(1)
        await vault.put(NS, "k", "made again")

    racing.race = make_again
    with pytest.raises(EncryptionError, match=r"'k' in .* was deleted and put again"):
        await both.rotate(NS)


async def test_rotation_under_a_storm_of_writes(vault, both):
    await vault.put_batch([(NS, str(n), 0) for n in range(20)])

    async def write(key):
        for value in range(1, 6):
            await vault.put(NS, key, value)
            await asyncio.sleep(0)

    await asyncio.gather(both.rotate(NS), *(write(str(n)) for n in range(20)))
    assert [item.value for item in await both.scan(NS)] == [5] * 20


@pytest.mark.slow
async def test_filters_read_as_far_as_they_must(vault):
    await vault.put(NS, "wanted", {"n": -1})
    await vault.put_batch([(NS, f"{n:04}", {"n": n}, {"even": n % 2 == 0}) for n in range(900)])
    assert [item.key for item in await vault.search(NS, limit=1, filter={"n": -1})] == ["wanted"]
    even = await vault.search(NS, limit=3, filter={"even": True}, offset=447)
    assert [item.key for item in even] == ["0004", "0002", "0000"]


def test_bad_keys_are_refused(inner):
    with pytest.raises(
        ConfigurationError, match="no key 'new' to encrypt with; known: \\['old'\\]"
    ):
        EncryptingStore(inner, OLD, active="new")
    for bad in (b"hunter2", "hunter2-hunter2-", 16, None):
        with pytest.raises(ConfigurationError, match="must be bytes: 16, 24 or 32") as caught:
            EncryptingStore(inner, {"bad": bad}, active="bad")
        assert "hunter2" not in str(caught.value)


def test_keys_are_not_printed(vault):
    assert repr(vault) == "EncryptingStore(InMemoryStore())"


def test_the_missing_library_is_named(inner, monkeypatch):
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives.ciphers.aead", None)
    with pytest.raises(MissingDriverError, match=r"'encryption' extra: pip install"):
        EncryptingStore(inner, OLD, active="old")


@pytest.fixture
def embedder():
    return FakeEmbedder()


@pytest.fixture
def semantic(inner, embedder):
    return EmbeddingStore(inner, embedder)


def test_the_fake_is_an_embedder(embedder):
    assert isinstance(embedder, Embedder)


async def test_a_query_finds_what_is_alike(semantic):
    await semantic.put(NS, "tea", {"text": "Ada likes green tea"}, {"kind": "taste"})
    await semantic.put(NS, "bike", {"text": "Bob rides a red bike"}, {"kind": "sport"})
    await semantic.put(NS, "both", {"text": "tea and a bike"}, {"kind": "taste"})
    await semantic.put((*NS, "below"), "deep", "green tea")
    found = await semantic.search(NS, "green tea", 2)
    assert [item.key for item in found] == ["tea", "both"]
    assert found[0].score > found[1].score > 0
    assert found[0].value == {"text": "Ada likes green tea"}
    assert [item.key for item in await semantic.search(NS, "green tea", 1, offset=1)] == ["both"]
    sport = await semantic.search(NS, "green tea", filter={"kind": "sport"})
    assert [item.key for item in sport] == ["bike"]
    deep = await semantic.search(NS, "green tea", 1, recursive=True)
    assert [item.key for item in deep] == ["deep"]
    assert [item.key for item in await semantic.search(NS)] == ["both", "bike", "tea"]
    assert await semantic.search(NS, " \n") == []


async def test_pages_are_exact(semantic):
    await semantic.put_batch([(NS, f"{n:02}", f"fox number {n}") for n in range(25)])
    pages = [await semantic.search(NS, "fox", 10, offset=n) for n in (0, 10, 20, 30)]
    assert [len(page) for page in pages] == [10, 10, 5, 0]
    assert len({item.key for page in pages for item in page}) == 25


async def test_a_batch_is_embedded_in_one_call(semantic, embedder):
    own = [1.0] + [0.0] * (embedder.dimension - 1)
    await semantic.put_batch(
        [
            (NS, "a", "fox"),
            (NS, "b", {"n": 1}),
            Put(namespace=NS, key="c", value="fox", text="dog"),
            Put(namespace=NS, key="d", value="fox", text=""),
            Put(namespace=NS, key="e", value="fox", embedding=own),
        ]
    )
    assert embedder.calls == [2]
    [dog] = await embedder.embed(["dog"])
    assert await semantic.get_embedding(NS, "b") is None
    assert await semantic.get_embedding(NS, "c") == pytest.approx(dog, abs=1e-6)
    assert await semantic.get_embedding(NS, "d") is None
    assert await semantic.get_embedding(NS, "e") == own


async def test_write_batch_embeds_its_puts(semantic, embedder):
    await semantic.put(NS, "old", "fox")
    results = await semantic.write_batch(
        [
            Put(namespace=NS, key="a", value="fox"),
            Delete(namespace=NS, key="old"),
            Put(namespace=NS, key="b", value="dog"),
        ]
    )
    assert results == [1, True, 1]
    assert embedder.calls == [1, 2]
    assert [item.key for item in await semantic.search(NS, "dog")] == ["b", "a"]


async def test_an_update_without_text_drops_the_vector(semantic):
    await semantic.put(NS, "k", "fox")
    await semantic.put(NS, "k", {"n": 1})
    assert await semantic.search(NS, "fox") == []
    assert await semantic.get(NS, "k") == {"n": 1}


async def test_what_to_embed_is_an_option(inner, embedder):
    semantic = EmbeddingStore(inner, embedder, text_of=lambda value: index_text(value["body"]))
    await semantic.put(NS, "k", {"title": "dog", "body": "fox"})
    [fox] = await embedder.embed(["fox"])
    assert await semantic.get_embedding(NS, "k") == pytest.approx(fox, abs=1e-6)


async def test_a_bad_value_never_reaches_the_model(semantic, embedder):
    with pytest.raises(ValueNotSerializableError):
        await semantic.put(NS, "k", {"text": "fox", "tags": {"a"}})
    assert embedder.calls == []


async def test_it_needs_a_store_with_vectors(inner, embedder):
    bare = EmbeddingStore(BareStore(inner), embedder)
    for call in (bare.open, lambda: bare.put(NS, "k", "fox"), lambda: bare.search(NS, "fox")):
        with pytest.raises(ConfigurationError, match="no semantic search"):
            await call()
    assert embedder.calls == []
    assert not await inner.exists(NS, "k")
    with pytest.raises(ConfigurationError, match=r"64 dimensions, .* holds 8"):
        EmbeddingStore(InMemoryStore(embedding_dimension=8), embedder)


@pytest.mark.parametrize("vectors", [[], [[1.0] * 64] * 2, [[1.0] * 63]], ids=["0", "2", "short"])
async def test_an_embedder_that_miscounts_is_refused(semantic, embedder, monkeypatch, vectors):
    async def embed(texts, *, kind):
        return vectors

    monkeypatch.setattr(embedder, "embed", embed)
    with pytest.raises(InvalidEmbeddingError, match="fake-64 returned"):
        await semantic.put(NS, "k", "fox")
    assert not await semantic.exists(NS, "k")


async def test_wrappers_stack(inner, embedder):
    stack = EmbeddingStore(EncryptingStore(inner, NEW, active="new"), embedder)
    await stack.put(NS, "k", "a fox")
    await stack.put(NS, "l", "a dog")
    assert [item.value for item in await stack.search(NS, "fox", 1)] == ["a fox"]
    assert "a fox" not in json.dumps([item.to_dict() for item in await inner.scan(NS)])


async def test_similar_texts_have_similar_vectors(embedder):
    texts = ["the red fox runs", "red foxes running", "a blue whale"]
    one, alike, other = await embedder.embed(texts, kind="document")
    assert await embedder.embed(texts[:1], kind="query") == [one]
    assert sum(map(float.__mul__, one, alike)) > 0.9
    assert sum(map(float.__mul__, one, other)) < 0.5
