"""Names that the library makes are sealed: found, listed and moved as names, and never read."""

from __future__ import annotations

import asyncio
import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from locus_memory import EncryptionError, LLMMemoryManager, VersionConflictError, open_backend
from locus_memory.backends.inmemory.store import InMemoryStore
from locus_memory.backends.remains import ByteSearch
from locus_memory.encryption import EncryptingBackend, EncryptionKeys, rotate
from locus_memory.encryption.names import SealedNames, hides, key_of_names, readable
from locus_memory.integrity import verify_items
from locus_memory.memory.models import Memory
from locus_memory.store.base import scan_all
from locus_memory.store.encoding import encode_namespace
from locus_memory.store.item import Delete, Put, StoreCapabilities
from locus_memory.store.json_values import encode_json
from locus_memory.store.wrappers import EncryptingStore, StoreWrapper
from locus_memory.store.wrappers.base import READS, WRITES
from locus_memory.testing import FakeClock

OLD = EncryptionKeys({"old": b"o" * 32}, "old")
BOTH = EncryptionKeys({"new": b"n" * 32, "old": b"o" * 32}, "new")
FIRST = EncryptionKeys({"new": b"n" * 32, "old": b"o" * 32}, "old")
NEW = EncryptionKeys({"new": b"n" * 32}, "new")
NAMES = SealedNames(key_of_names(b"k" * 32), has_plain=False)

CURRENT = ("locus_memory", "current")
HISTORY = ("locus_memory", "users", "ada", "history", "user", "allergy:zebrawood")
TREE = ("memory", "tree", "zebrawood")
CHUNKS = ("documents", "chunks")
SOURCES = ("documents", "sources")
PLACES = {
    "current": (CURRENT, "user:allergy:zebrawood"),
    "history": (HISTORY, "000000000001"),
    "tree": (TREE, "zebrawood.md"),
    "chunks": (CHUNKS, "0123abcd-4567/000001"),
    "sources": (SOURCES, "zebrawood.md"),
}

words = st.text(min_size=1, max_size=30)
labels = st.one_of(
    words,
    st.sampled_from(
        [
            *("history", "tree", "chunks", "versions", "folders", "current", "vitals", "users"),
            *("locus_memory", "locus_memory:sealed:", "*", "\x00", "-", "a-b", "\x80", "/"),
        ]
    ),
)
namespaces = st.lists(labels, min_size=1, max_size=6).map(tuple)


@given(namespaces, labels)
def test_a_sealed_name_is_read_back(namespace, key):
    stored, name = NAMES.place(namespace, key)
    assert NAMES.name(stored) == namespace
    assert NAMES.key_name(namespace, name) == key
    assert hides(stored) == hides(namespace)
    assert readable(stored) == readable(namespace)
    assert stored[: len(readable(namespace))] == readable(namespace)


@given(namespaces, st.integers(0, 5))
def test_what_is_above_a_sealed_namespace_is_its_beginning(namespace, depth):
    above = namespace[:depth]
    assert NAMES.namespace(namespace)[: len(above)] == NAMES.namespace(above)


@given(namespaces, namespaces, labels, labels)
def test_no_two_names_meet(one, other, key, other_key):
    same = (one, key) == (other, other_key)
    assert (NAMES.place(one, key) == NAMES.place(other, other_key)) == same


@pytest.mark.parametrize(
    "user", ["history", "tree", "chunks", "current", "sources", "versions", "transcript", "-"]
)
def test_no_name_of_a_user_makes_a_memory_or_a_resource_readable(user):
    scope = ("locus_memory", "users", user)
    secret = "zebrawood"
    for namespace, key in [
        ((*scope, "current"), f"user:{secret}"),
        ((*scope, "vitals"), f"user:{secret}"),
        ((*scope, "history", "user", secret), "000000000001"),
        (("users", user, "memory", "tree", secret), f"{secret}-{secret}.md"),
        (("users", user, "memory", "tree", secret, "chunks"), f"{secret}-{secret}.md"),
        (("users", user, "memory", "chunks", secret), "000001"),
        (("users", user, "memory", "versions", secret), "000001"),
        (("users", user, "memory", "folders", secret), "levels"),
        (("users", user, "documents", "sources"), secret),
    ]:
        assert secret not in str(NAMES.place(namespace, key))


def test_the_length_of_a_name_is_seen_in_steps_of_16_bytes():
    sizes = {len(NAMES.place(CURRENT, "x" * size)[1]) for size in range(1, 16)}
    assert len(sizes) == 1


class Sealed:
    """An in-memory store, and encrypted ones over it."""

    def __init__(self):
        self.inner = InMemoryStore()
        self.store = EncryptingStore(self.inner, OLD)

    async def raw(self):
        """All stored items, without the key of the names."""
        spaces = await self.inner.list_namespaces(limit=1_000)
        items = [item for space in spaces for item in await self.inner.scan(space, 1_000)]
        return [item for item in items if item.namespace != ("locus_memory:sealed",)]

    async def put_as_before(self, namespace, key, value, metadata=None, keys=OLD):
        """Put an item as an earlier version of the library did."""
        place = encode_namespace((*namespace, key, keys.active)).encode()
        data = base64.b64encode(keys.encrypt(encode_json(value), place)).decode()
        envelope = {"key_id": keys.active, "aes_gcm": data}
        await self.inner.put(namespace, key, envelope, metadata, text="")


@pytest.fixture
def sealed():
    return Sealed()


@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES)
async def test_a_name_of_the_library_and_its_metadata_are_not_readable(sealed, place):
    await sealed.store.put(*place, {"text": "v"}, {"heading": "zebrawood"})
    (item,) = await sealed.raw()
    assert "zebrawood" not in json.dumps(item.to_dict())
    assert "0123abcd" not in json.dumps(item.to_dict())
    found = await sealed.store.get_item(*place)
    assert (found.namespace, found.key, found.metadata) == (*place, {"heading": "zebrawood"})
    assert await sealed.store.list_namespaces() == [place[0]]
    assert await sealed.store.list_keys(place[0]) == [place[1]]


async def test_what_a_caller_names_stays_readable(sealed):
    await sealed.store.put(("mine", "ada"), "diet", "No walnuts.", {"kind": "food"})
    (item,) = await sealed.raw()
    assert (item.namespace, item.key, item.metadata) == (("mine", "ada"), "diet", {"kind": "food"})


async def test_a_ciphertext_is_good_in_its_place_alone(sealed):
    places = [
        *PLACES.values(),
        (CURRENT, "user:other"),
        (("locus_memory", "users", "bob", "current"), "user:allergy:zebrawood"),
        (("locus_memory", "users", "ada", "current"), "user:allergy:zebrawood"),
        (("mine",), "k"),
    ]
    await sealed.store.put_batch([(*place, f"{place}") for place in places])
    items = {sealed.store.inner._names.place(*place): place for place in places}
    for source in await sealed.raw():
        for target in await sealed.raw():
            if (source.namespace, source.key) == (target.namespace, target.key):
                continue
            await sealed.inner.put(target.namespace, target.key, source.value, source.metadata)
            with pytest.raises(EncryptionError, match="altered, moved"):
                await sealed.store.get(*items[target.namespace, target.key])
            await sealed.inner.put(target.namespace, target.key, target.value, target.metadata)
    for place in places:
        assert await sealed.store.get(*place) == f"{place}"


async def test_a_sealed_name_is_good_in_its_namespace_alone(sealed):
    await sealed.store.put(CURRENT, "user:a", 1)
    (item,) = await sealed.raw()
    elsewhere = ("locus_memory", "users", "bob", "current")
    await sealed.inner.put(elsewhere, item.key, item.value)
    with pytest.raises(EncryptionError, match="altered, moved or sealed"):
        await sealed.store.list_keys(elsewhere)
    with pytest.raises(EncryptionError, match="altered, moved or sealed"):
        await sealed.store.scan(elsewhere)


async def test_a_conflict_tells_the_name_of_the_item(sealed):
    place = CURRENT, "user:a"
    await sealed.store.put(*place, 1)
    put = Put(namespace=CURRENT, key="user:a", value=2, if_version=7)
    gone = Delete(namespace=CURRENT, key="user:a", if_version=7)
    for call in (
        sealed.store.put(*place, 2, if_version=7),
        sealed.store.delete(*place, if_version=7),
        sealed.store.put_batch([put]),
        sealed.store.write_batch([gone]),
    ):
        with pytest.raises(VersionConflictError) as caught:
            await call
        assert (caught.value.namespace, caught.value.key) == place


class NoTransactions(StoreWrapper):
    """A store without transactions."""

    capabilities = StoreCapabilities(
        search=True, semantic_search=True, ttl=True, list_namespaces=True
    )


@pytest.fixture(params=[False, True], ids=["transactions", "none"])
async def older(request):
    """A database of an earlier version, with plain names and readable metadata."""
    sealed = Sealed()
    if request.param:
        sealed.store = EncryptingStore(NoTransactions(sealed.inner), OLD)
    for namespace, key in PLACES.values():
        await sealed.put_as_before(namespace, key, f"v {key}", {"heading": "zebrawood"})
        await sealed.put_as_before(namespace, f"{key}2", f"v {key}2")
    await sealed.put_as_before(("mine",), "k", "v", {"kind": "food"})
    return sealed


async def test_an_older_database_reads_as_before(older):
    before = await older.raw()
    await check(older.store)
    assert await older.raw() == before


async def check(store):
    for namespace, key in PLACES.values():
        assert await store.get(namespace, key) == f"v {key}"
        assert await store.exists(namespace, f"{key}2")
        assert (await store.get_item(namespace, key)).metadata == {"heading": "zebrawood"}
        assert await store.list_keys(namespace) == [key, f"{key}2"]
        assert await store.list_keys(namespace, after=key) == [f"{key}2"]
        assert [item.key for item in await store.scan(namespace)] == [key, f"{key}2"]
        found = await store.search(namespace, filter={"heading": "zebrawood"})
        assert [(item.namespace, item.key) for item in found] == [(namespace, key)]
    spaces = {namespace for namespace, _ in PLACES.values()} | {("mine",)}
    assert await store.list_namespaces() == sorted(spaces)
    names = list(PLACES.values())
    assert await store.get_batch(names) == {name: f"v {name[1]}" for name in names}


async def test_a_write_seals_an_older_name(older):
    for namespace, key in PLACES.values():
        assert await older.store.put(namespace, key, "changed") == 2
        assert await older.store.get(namespace, key) == "changed"
        assert await older.store.list_keys(namespace) == [key, f"{key}2"]
        assert await older.store.delete(namespace, f"{key}2")
        assert await older.store.list_keys(namespace) == [key]
    assert "zebrawood" not in str([(item.namespace, item.key) for item in await older.raw()])


async def test_a_name_is_cleared_in_both_forms(older):
    await older.store.put(HISTORY, "000000000001", "changed")
    assert await older.store.clear_namespace(HISTORY) == 2
    assert await older.store.clear_namespace(TREE[:-1], recursive=True) == 2
    assert HISTORY not in await older.store.list_namespaces()


@pytest.mark.parametrize("keys", [OLD, BOTH], ids=["same key", "new key"])
async def test_rotate_seals_all_older_names_and_metadata(older, keys):
    store = EncryptingStore(older.store.inner.inner, keys)
    before = await store.get_item(*PLACES["chunks"])
    dry = [each async for each in store.rotation(dry_run=True)]
    assert (len(dry), sum(is_plain for *_, is_plain in dry)) == (11, 10)
    assert await store.rotate() == 11
    assert await store.rotate() == 0
    assert "zebrawood" not in json.dumps([item.to_dict() for item in await older.raw()])
    assert [each async for each in store.inner.former()] == []
    only = EncryptingStore(older.inner, NEW if keys is BOTH else OLD)
    await check(only)
    assert not (await only.inner._known()).has_plain
    assert (await only.get_item(*PLACES["chunks"])).metadata == before.metadata
    await only.put(*PLACES["current"], "after")
    assert await only.get(*PLACES["current"]) == "after"


async def test_a_move_that_was_killed_is_finished(older):
    place = PLACES["current"]
    sealed = (await older.store.inner._known(writing=True)).place(*place)
    stored = await older.inner.get_item(*place)
    await older.inner.put(*sealed, stored.value)
    await older.store.put(*place, "newer")
    await older.put_as_before(*place, "left behind")
    assert await older.store.get(*place) == "newer"
    assert next(item.value for item in await older.store.scan(CURRENT)) == "newer"
    await older.store.rotate()
    assert await older.store.get(*place) == "newer"
    assert not await older.inner.exists(*place)


async def test_doctor_counts_older_names_and_rotate_through_a_backend(provider):
    where, options = provider
    async with open_backend(where, state_type=None, encryption=OLD, **options) as backend:
        sealed = Sealed()
        sealed.inner = backend.inner.store
        for namespace, key in PLACES.values():
            await sealed.put_as_before(namespace, key, f"v {key}", {"heading": "zebrawood"})
        (advice,) = [each for each in await backend.advice() if each.name == "encryption.names"]
        assert advice.finding.startswith("5 items have readable names")
        report = await rotate(backend, dry_run=True)
        assert (report.items, report.items_encrypted, report.plain) == (5, 5, 5)
        assert (await rotate(backend)).plain == 5
        assert (await rotate(backend)).items_encrypted == 0
        names = [each.name for each in await backend.advice()]
        assert "encryption.names" not in names
        for namespace, key in PLACES.values():
            assert await backend.store.get(namespace, key) == f"v {key}"
        places = await backend.inner.remains(ByteSearch(["zebrawood"]))
        assert not [place for place in places if place.found]


async def test_a_plain_database_is_encrypted_with_all_its_names(provider):
    where, options = provider
    async with open_backend(where, state_type=None, **options) as plain:
        manager = LLMMemoryManager(plain.store)
        for wood in ("zebrawood", "ebony"):
            await manager.save([Memory("user", "wood:zebrawood", f"likes {wood}")])
        both = EncryptionKeys({"old": b"o" * 32}, "old", accept_plain=True)
        backend = EncryptingBackend(plain, both)
        report = await rotate(backend)
        assert (report.items, report.items_encrypted, report.plain) == (2, 2, 2)
        places = await plain.remains(ByteSearch(["zebrawood"]))
        assert not [place for place in places if place.found]
        manager = LLMMemoryManager(EncryptingBackend(plain, OLD).store)
        history = await manager.history("wood:zebrawood")
        assert [each.content for each in history] == ["likes ebony", "likes zebrawood"]


async def test_the_key_of_the_names_outlives_a_rotation(sealed):
    await sealed.store.put(*PLACES["current"], 1)
    stored = [(item.namespace, item.key) for item in await sealed.raw()]
    assert await EncryptingStore(sealed.inner, BOTH).rotate() == 1
    assert [(item.namespace, item.key) for item in await sealed.raw()] == stored
    assert await EncryptingStore(sealed.inner, NEW).get(*PLACES["current"]) == 1
    with pytest.raises(EncryptionError, match="needs the key 'new'"):
        await EncryptingStore(sealed.inner, OLD).get(*PLACES["current"])


async def test_processes_with_another_active_key_agree_on_names(sealed):
    first, second = EncryptingStore(sealed.inner, OLD), EncryptingStore(sealed.inner, BOTH)
    await first.put(*PLACES["tree"], 1, if_version=0)
    with pytest.raises(VersionConflictError):
        await second.put(*PLACES["tree"], 2, if_version=0)
    assert await second.put(*PLACES["tree"], 2) == 2


async def test_the_namespace_of_the_key_is_in_no_listing(sealed):
    await sealed.store.put(*PLACES["current"], 1)
    assert await sealed.store.list_namespaces() == [CURRENT]
    assert len(await sealed.inner.list_namespaces()) == 2


async def test_namespaces_are_listed_in_order_and_in_pages(sealed):
    spaces = [
        *(("m", "history", "user", f"{word}{n}") for word in "zebra" for n in range(9)),
        *(("m", "tree", *path) for path in [("a",), ("a", "b"), ("b",)]),
        *[("m",), ("m", "historz"), ("a", "b"), ("z",)],
    ]
    await sealed.store.put_batch([(space, "k", 1) for space in spaces])
    wanted = sorted(set(spaces))
    assert await sealed.store.list_namespaces(limit=1_000) == wanted
    found, after = [], None
    while page := await sealed.store.list_namespaces(limit=7, after=after):
        found += page
        after = page[-1]
    assert found == wanted
    below = await sealed.store.list_namespaces(("m", "*", "user"), 1_000, max_depth=3)
    assert below == [("m", "history", "user")]
    assert await sealed.store.list_namespaces(("m", "tree", "a")) == [
        ("m", "tree", "a"),
        ("m", "tree", "a", "b"),
    ]
    assert await sealed.store.list_namespaces(suffix=("b",)) == [
        ("a", "b"),
        ("m", "tree", "a", "b"),
        ("m", "tree", "b"),
    ]


async def test_memories_of_an_older_database_go_on(sealed):
    plain = LLMMemoryManager(sealed.inner)
    await plain.save([Memory("user", "home", "Lyon"), Memory("user", "pet", "a cat")])
    await plain.save([Memory("user", "home", "Paris")])
    for item in await sealed.raw():
        await sealed.put_as_before(item.namespace, item.key, item.value)
    manager = LLMMemoryManager(sealed.store)
    await manager.save([Memory("user", "home", "Oslo")])
    assert {each.content for each in await manager.retrieve()} == {"Oslo", "a cat"}
    assert [each.content for each in await manager.history("home")] == ["Oslo", "Paris", "Lyon"]
    assert [each.content for each in await manager.retrieve(query="cat")][:1] == ["a cat"]


@pytest.mark.slow
async def test_ten_thousand_names_are_listed_and_read(tmp_path):
    async with open_backend(f"sqlite:{tmp_path / 'a.db'}", encryption=OLD) as backend:
        store = backend.store
        puts = [(CURRENT, f"user:{n:05}", {"content": f"fact {n}"}) for n in range(10_000)]
        for start in range(0, len(puts), 1_000):
            await store.put_batch(puts[start : start + 1_000])
        keys = await store.list_keys(CURRENT, 10_000)
        assert keys == [key for _, key, _ in puts]
        count = 0
        async for item in scan_all(store, CURRENT):
            count += item.value["content"] == f"fact {int(item.key[5:])}"
        assert count == 10_000
        found = await store.search(CURRENT, "fact 77", 1)
        assert found[0].key == "user:00077"


async def test_names_of_a_thousand_characters_are_sealed_on_every_backend(provider):
    where, options = provider
    long = "\N{ZEBRA FACE}" * 1_000
    async with open_backend(where, state_type=None, encryption=OLD, **options) as backend:
        store = backend.store
        places = [(CURRENT, long), ((*HISTORY[:-1], long), "1"), ((*TREE, long), long)]
        await store.put_batch([(*place, "v") for place in places])
        assert await store.list_keys(CURRENT) == [long]
        assert await store.list_namespaces() == sorted({namespace for namespace, _ in places})
        assert await store.get_batch(places) == dict.fromkeys(places, "v")
        assert await store.clear_namespace(TREE, recursive=True) == 1


class Yielding(StoreWrapper):
    """A store in which others have their turn before each verb."""

    async def get_item(self, namespace, key):
        await asyncio.sleep(0)
        return await super().get_item(namespace, key)

    async def exists(self, namespace, key):
        await asyncio.sleep(0)
        return await super().exists(namespace, key)

    async def put_batch(self, items):
        await asyncio.sleep(0)
        return await super().put_batch(items)


@pytest.mark.parametrize("kind", [StoreWrapper, NoTransactions], ids=["transactions", "none"])
async def test_writers_lose_nothing_while_names_are_sealed(kind):
    sealed = Sealed()
    places = [PLACES["current"], PLACES["tree"], PLACES["history"]]
    for place in places:
        await sealed.put_as_before(*place, 0)
    stores = [EncryptingStore(kind(Yielding(sealed.inner)), keys) for keys in (FIRST, BOTH, FIRST)]

    async def count(store, place):
        for _ in range(10):
            while True:
                item = await store.get_item(*place)
                await asyncio.sleep(0)
                try:
                    await store.put(*place, item.value + 1, if_version=item.version)
                    break
                except VersionConflictError:
                    continue

    work = [count(store, place) for store in stores for place in places for _ in range(2)]
    await asyncio.gather(*work, stores[1].rotate(), stores[2].rotate())
    for place in places:
        assert await stores[0].get(*place) == 60
        assert not await sealed.inner.exists(*place)


@given(st.lists(namespaces, max_size=5), namespaces, st.integers(0, 4), st.integers(0, 3))
async def test_namespaces_are_listed_as_by_a_plain_store(there, asked, depth, start):
    plain, sealed = InMemoryStore(), Sealed()
    for namespace in [*there, asked]:
        for store in (plain, sealed.store):
            await store.put(namespace, "k", 1)
    for listing in [
        {"prefix": asked[:start]},
        {"prefix": ("*", *asked[1:start])},
        {"suffix": asked[start:]},
        {"after": asked[:start]},
    ]:
        expected = await plain.list_namespaces(**listing, max_depth=depth)
        assert await sealed.store.list_namespaces(**listing, max_depth=depth) == expected


def _counted(name):
    async def verb(self, *args, **options):
        result = await getattr(self.inner, name)(*args, **options)
        self.calls += 1
        if self.calls == self.moment:
            await self.happens()
        return result

    return verb


Meanwhile = type("Meanwhile", (StoreWrapper,), {each: _counted(each) for each in (*READS, *WRITES)})
"""A store in which something happens after a certain call."""


@pytest.mark.parametrize("moment", range(1, 9))
@pytest.mark.parametrize("place", [PLACES["current"], PLACES["tree"]], ids=["current", "tree"])
@pytest.mark.parametrize("verb", ["clear", "scan", "keys", "search", "near", "get", "batch"])
async def test_an_item_is_seen_and_cleared_while_its_name_is_sealed(verb, place, moment):
    sealed = Sealed()
    await sealed.put_as_before(*place, "zebra")
    item = await sealed.inner.get_item(*place)
    await sealed.inner.put_with_embedding(*place, item.value, [1.0, 0.0], text="")
    inner = Meanwhile(sealed.inner)
    inner.calls, inner.moment, inner.happens = 0, moment, sealed.store.rotate
    store = EncryptingStore(inner, OLD)
    verbs = {
        "clear": lambda: store.clear_namespace(place[0]),
        "scan": lambda: store.scan(place[0]),
        "keys": lambda: store.list_keys(place[0]),
        "search": lambda: store.search(place[0]),
        "near": lambda: store.search_by_embedding(place[0], [1.0, 0.0]),
        "get": lambda: store.get_batch([place]),
        "batch": lambda: store.delete_batch([place]),
    }
    found = await verbs[verb]()
    assert found == 1 or len(found) == 1
    assert await store.exists(*place) == (verb not in {"clear", "batch"})


async def test_verify_tells_an_altered_name(sealed):
    await sealed.store.put_batch([(CURRENT, "user:a", 1), (("mine",), "k", 2)])
    (item,) = [each for each in await sealed.raw() if each.namespace == CURRENT]
    await sealed.inner.delete(CURRENT, item.key)
    await sealed.inner.put(CURRENT, item.key[:-4] + "AAA=", item.value)
    findings = [each async for each in verify_items(sealed.store)]
    assert [each.place for each in findings if each.reason is None] == [("mine", "k")]
    (bad,) = [each for each in findings if each.reason is not None]
    assert "altered, moved or sealed" in bad.reason


@pytest.mark.parametrize("ahead", [0, 200, 3_600])
async def test_a_clock_that_is_ahead_rotates_what_expires(ahead):
    """The inner store tells what has expired; the clock of the rotation may be another one."""
    server, here = FakeClock(), FakeClock()
    here.advance(ahead)
    inner = InMemoryStore(clock=server)
    before = EncryptingStore(inner, OLD, clock=server)
    places = [(("mine",), "k"), *PLACES.values()]
    for namespace, key in places:
        await before.put(namespace, key, f"v {key}", ttl=300)
    server.advance(100)
    here.advance(100)
    rotating = EncryptingStore(inner, BOTH, clock=here)
    assert await rotating.rotate() >= len(places)
    after = EncryptingStore(inner, NEW, clock=server)
    for namespace, key in places:
        assert await after.get(namespace, key) == f"v {key}"
    server.advance(301)
    for namespace, key in places:
        assert not await after.exists(namespace, key)
