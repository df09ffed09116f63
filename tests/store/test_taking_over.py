"""A store of plain values becomes an encrypted one."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from locus_memory import (
    BackendUnavailableError,
    EncryptingStore,
    EncryptionError,
    InMemoryStore,
    Put,
    SQLiteStore,
    StoreWrapper,
    open_backend,
)
from locus_memory.testing import FakeClock

NS = ("vault",)
OLD, NEW = {"old": b"o" * 16}, {"new": b"n" * 32}


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
def taking_over(inner, clock):
    """The store that encrypts what was kept in the clear so far."""
    return EncryptingStore(inner, OLD | NEW, active="new", clock=clock, accept_plain=True)


@pytest.fixture
def strict(inner, clock):
    return EncryptingStore(inner, NEW, active="new", clock=clock)


PLAIN = ["text", None, 5, {}, [1], {"key_id": "new"}, {"aes_gcm": "AAAA"}, [["key_id", "aes_gcm"]]]


@pytest.mark.parametrize("plain", PLAIN, ids=repr)
async def test_a_plain_value_is_read_only_by_a_store_that_takes_over(
    inner, strict, taking_over, plain
):
    await inner.put_with_embedding(NS, "k", plain, [1.0, 0.0], {"m": 1})
    assert await taking_over.get(NS, "k") == plain
    assert await taking_over.get_batch([(NS, "k")]) == {(NS, "k"): plain}
    hits = await taking_over.search_by_embedding(NS, [1.0, 0.0])
    assert [hit.item.value for hit in hits] == [plain]
    for found in (await taking_over.scan(NS), await taking_over.search(NS, filter={"m": 1})):
        assert [item.value for item in found] == [plain]
    for call in (strict.get(NS, "k"), strict.scan(NS), strict.search(NS), strict.rotate(NS)):
        with pytest.raises(EncryptionError, match="is not encrypted"):
            await call


async def test_a_store_that_takes_over_writes_nothing_plain(inner, taking_over):
    await inner.put(NS, "a", "hunter2")
    await taking_over.put(NS, "a", "hunter2", if_version=1)
    await taking_over.put_batch([(NS, "b", "hunter2")])
    await taking_over.write_batch([Put(namespace=NS, key="c", value="hunter2")])
    assert "hunter2" not in json.dumps([item.to_dict() for item in await inner.scan(NS)])


@pytest.mark.parametrize(
    "envelope",
    [
        {"key_id": "old", "aes_gcm": "!"},
        {"key_id": "old", "aes_gcm": ""},
        {"key_id": "lost", "aes_gcm": "AAAA"},
        {"key_id": "old", "aes_gcm": "AAAA", "more": 1},
        {"key_id": 1, "aes_gcm": None},
    ],
    ids=repr,
)
async def test_a_damaged_envelope_is_never_plain(inner, taking_over, envelope):
    await inner.put(NS, "k", envelope)
    for call in (taking_over.get(NS, "k"), taking_over.scan(NS), taking_over.rotate(NS)):
        with pytest.raises(EncryptionError, match="'k' in"):
            await call
    assert await inner.get(NS, "k") == envelope


async def test_a_moved_value_is_refused_while_taking_over(inner, vault, taking_over):
    await vault.put(NS, "k", "secret")
    await inner.put(NS, "other", await inner.get(NS, "k"))
    with pytest.raises(EncryptionError, match="altered, moved"):
        await taking_over.get(NS, "other")


async def test_taking_over_a_plain_store(inner, vault, strict, taking_over, clock):
    await inner.put(NS, "plain", {"text": "hunter2"}, {"m": 1})
    await inner.put(NS, "plain", {"text": "hunter3"}, {"m": 1})
    await inner.put_with_embedding(NS, "vector", 2, [3.0, 4.0], text="hunter2")
    await inner.put(NS, "passing", 3, ttl=60)
    await inner.put((*NS, "below"), "deep", None)
    await inner.put(("elsewhere",), "k", "hunter2")
    await vault.put(NS, "old", 4)
    await taking_over.put(NS, "fresh", 5)
    before = {item.key: item for item in await inner.scan(NS)}
    clock.advance(20)
    assert await taking_over.rotate(NS) == 4
    assert await taking_over.rotate() == 2
    assert await taking_over.rotate() == await strict.rotate() == 0
    found = {item.key: item for item in await strict.scan(NS)}
    values = {"fresh": 5, "old": 4, "passing": 3, "plain": {"text": "hunter3"}, "vector": 2}
    assert {key: item.value for key, item in found.items()} == values
    assert found["plain"].metadata == {"m": 1}
    versions = {"fresh": 1, "old": 2, "passing": 2, "plain": 3, "vector": 2}
    assert {key: item.version for key, item in found.items()} == versions
    assert all(item.created_at == before[key].created_at for key, item in found.items())
    assert found["passing"].expires_at == before["passing"].expires_at
    assert await strict.get_embedding(NS, "vector") == pytest.approx([0.6, 0.8])
    assert await strict.exists((*NS, "below"), "deep")
    assert await strict.get(("elsewhere",), "k") == "hunter2"
    assert await inner.search(NS, "hunter2 hunter3", recursive=True) == []
    clock.advance(40)
    assert not await strict.exists(NS, "passing")


class RacingStore(StoreWrapper):
    """Lets somebody else write, once, just before a batch is written."""

    race = None

    async def put_batch(self, items):
        race, self.race = self.race, None
        if race is not None:
            await race()
        return await super().put_batch(items)


async def test_taking_over_loses_no_concurrent_write(inner, strict, clock):
    racing = RacingStore(inner)
    taking_over = EncryptingStore(racing, NEW, active="new", clock=clock, accept_plain=True)
    await inner.put(NS, "k", "old")
    racing.race = lambda: inner.put(NS, "k", "written meanwhile")
    assert await taking_over.rotate(NS) == 1
    assert await strict.get(NS, "k") == "written meanwhile"
    await inner.put(NS, "k", "old again")
    racing.race = lambda: strict.put(NS, "k", "encrypted meanwhile")
    assert await taking_over.rotate(NS) == 0
    assert await strict.get(NS, "k") == "encrypted meanwhile"


async def test_two_take_over_one_store(inner, strict, taking_over):
    await inner.put_batch([(NS, f"{n:03}", n) for n in range(200)])
    counts = await asyncio.gather(taking_over.rotate(), taking_over.rotate())
    assert sum(counts) == 200
    assert [item.version for item in await strict.scan(NS, 200)] == [2] * 200


class FailingStore(StoreWrapper):
    """Fails when so many batches are written: before one is, or after it."""

    def __init__(self, store, left, *, late):
        super().__init__(store)
        self.left, self.late = left, late

    async def put_batch(self, items):
        self.left -= 1
        if self.left < 0 and not self.late:
            raise BackendUnavailableError("out")
        versions = await super().put_batch(items)
        if self.left < 0:
            raise BackendUnavailableError("out")
        return versions


KINDS = st.sampled_from(["plain", "old", "new"])


@pytest.mark.slow
@settings(deadline=None, max_examples=60)
@given(
    written=st.lists(st.tuples(KINDS, st.sampled_from(PLAIN)), max_size=8),
    failures=st.lists(st.tuples(st.integers(0, 5), st.booleans()), max_size=3),
)
async def test_taking_over_is_interrupted_and_done_again(written, failures):
    items = {str(place): item for place, item in enumerate(written)}
    inner = InMemoryStore()
    stores = {
        "plain": inner,
        "old": EncryptingStore(inner, OLD, active="old"),
        "new": EncryptingStore(inner, NEW, active="new"),
    }
    for key, (kind, value) in items.items():
        await stores[kind].put(NS, key, value, {"kind": kind})
    for left, late in failures:
        failing = FailingStore(inner, left, late=late)
        store = EncryptingStore(failing, OLD | NEW, active="new", accept_plain=True)
        with suppress(BackendUnavailableError):
            await store.rotate()
        found = await store.scan(NS)
        assert {item.key: item.value for item in found} == {k: v for k, (_, v) in items.items()}
    await EncryptingStore(inner, OLD | NEW, active="new", accept_plain=True).rotate()
    found = {item.key: item for item in await stores["new"].scan(NS)}
    assert {key: item.value for key, item in found.items()} == {
        key: value for key, (_, value) in items.items()
    }
    for key, (kind, _) in items.items():
        assert found[key].version == (1 if kind == "new" else 2)
        assert found[key].metadata == {"kind": kind}


async def test_any_backend_is_taken_over(provider):
    where, options = provider
    labels = [("*",), ("a/b",), ("a", "b"), ("users", "ada", "memories")]
    async with open_backend(where, **options) as backend:
        inner = backend.store
        for namespace in labels:
            await inner.put_with_embedding(namespace, "k", {"n": 1}, [3.0, 4.0], {"m": 1}, ttl=600)
            await inner.put(namespace, "k\x00/", "twice")
            await inner.put(namespace, "k\x00/", ["walnuts"])
        before = [item for each in labels for item in await inner.scan(each)]
        store = EncryptingStore(backend, NEW, active="new", accept_plain=True)
        assert await store.rotate() == 2 * len(labels)
        await store.compact()
        strict = EncryptingStore(backend, NEW, active="new")
        after = [item for each in labels for item in await strict.scan(each)]
        kept = ("namespace", "key", "value", "metadata", "created_at")
        for old, new in zip(before, after, strict=True):
            assert new.version == old.version + 1
            assert [getattr(new, name) for name in kept] == [getattr(old, name) for name in kept]
            assert (new.expires_at is None) == (old.expires_at is None)
        assert await strict.get_embedding(("a", "b"), "k") == pytest.approx([0.6, 0.8])
        assert await inner.search(("a", "b"), "walnuts") == []
        assert await strict.rotate() == 0


@pytest.mark.slow
@pytest.mark.parametrize("beside", [False, True], ids=["alone", "beside-a-reader"])
async def test_no_plain_word_stays_in_a_sqlite_file(tmp_path, clock, beside):
    def files():
        return [SQLiteStore(tmp_path / "secrets.db", clock=clock) for _ in range(3)]

    def holding(word):
        return [each.name for each in tmp_path.iterdir() if word in each.read_bytes()]

    options = {"active": "new", "clock": clock}
    reader, plain, own = files()
    async with reader, plain:
        await plain.put_batch([(NS, str(n), {"text": f"penicillin {n}"}) for n in range(300)])
        await plain.put_with_embedding(NS, "vector", "penicillin", [3.0, 4.0], ttl=60)
        if not beside:
            await plain.close()
            await reader.close()
        assert holding(b"penicillin")
        async with EncryptingStore(own, NEW, **options, accept_plain=True) as store:
            assert await store.rotate() == 301
            await store.compact()
            assert holding(b"penicillin") == []
    async with EncryptingStore(files()[0], NEW, **options) as strict:
        assert await strict.rotate() == 0
        assert await strict.get(NS, "299") == {"text": "penicillin 299"}
        assert await strict.get_embedding(NS, "vector") == pytest.approx([0.6, 0.8])
        clock.advance(60)
        assert not await strict.exists(NS, "vector")
