"""The words of encrypted items: what a search finds after any change, by whichever process."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from locus_memory import EncryptionError
from locus_memory.backends.inmemory.store import InMemoryStore
from locus_memory.encryption import EncryptionKeys
from locus_memory.store.wrappers import EncryptingStore, decrypted, encrypting
from locus_memory.testing import FakeClock

KEYS = EncryptionKeys({"k": b"k" * 32}, active="k")
SPACES = [("a",), ("a", "b"), ("c",)]
TEXTS = ["red boat", "blue boat", "der rote Kahn", "赤い船", "boat boat", "nothing"]

changes = st.one_of(
    st.tuples(
        st.just("put"), st.sampled_from(SPACES), st.sampled_from("xyz"), st.sampled_from(TEXTS)
    ),
    st.tuples(
        st.just("other"), st.sampled_from(SPACES), st.sampled_from("xyz"), st.sampled_from(TEXTS)
    ),
    st.tuples(
        st.just("ttl"), st.sampled_from(SPACES), st.sampled_from("xyz"), st.sampled_from(TEXTS)
    ),
    st.tuples(st.just("delete"), st.sampled_from(SPACES), st.sampled_from("xyz"), st.none()),
    st.tuples(st.just("later"), st.none(), st.none(), st.none()),
    st.tuples(
        st.just("search"),
        st.sampled_from(SPACES),
        st.booleans(),
        st.sampled_from(["boat", "赤", "rot"]),
    ),
)


async def found(store, space, query, recursive):
    hits = await store.search(space, query, 10, recursive=recursive)
    return [(hit.namespace, hit.key, hit.value, hit.version, hit.score) for hit in hits]


@given(st.lists(changes, max_size=25))
def test_a_search_finds_what_a_fresh_process_finds(steps):
    async def run():
        clock = FakeClock()
        inner = InMemoryStore(clock=clock)
        store, other = (EncryptingStore(inner, KEYS, clock=clock) for _ in range(2))
        for step, space, what, text in [
            *steps,
            *(("search", each, True, "boat") for each in SPACES),
        ]:
            if step == "put":
                await store.put(space, what, {"text": text})
            elif step == "other":
                await other.put(space, what, {"text": text}, {"by": "another"})
            elif step == "ttl":
                await other.put(space, what, {"text": text}, ttl=5)
            elif step == "delete":
                await other.delete(space, what)
            elif step == "later":
                clock.advance(3)
            else:
                fresh = EncryptingStore(inner, KEYS, clock=clock)
                assert await found(store, space, text, what) == await found(
                    fresh, space, text, what
                )

    asyncio.run(run())


async def test_an_altered_item_is_an_error_in_the_next_search():
    inner = InMemoryStore()
    store = EncryptingStore(inner, KEYS)
    await store.put_batch([(("a",), f"{n}", {"text": f"boat {n}"}) for n in range(5)])
    assert len(await store.search(("a",), "boat", 10)) == 5
    item = await inner.get_item(("a",), "2")
    await inner.put(("a",), "3", item.value)
    with pytest.raises(EncryptionError):
        await store.search(("a",), "boat", 10)


async def test_searches_at_once_find_the_same(monkeypatch):
    monkeypatch.setattr(decrypted, "_TOGETHER", 3)
    inner = InMemoryStore()
    store = EncryptingStore(inner, KEYS)
    await store.put_batch([(("a",), f"{n}", {"text": f"boat {n}"}) for n in range(50)])
    answers = await asyncio.gather(*(store.search(("a",), "boat", 100) for _ in range(5)))
    assert [len(each) for each in answers] == [50] * 5


async def test_what_is_kept_for_searches_is_bounded(monkeypatch):
    monkeypatch.setattr(encrypting, "MOST_SEARCHED", 20)
    store = EncryptingStore(InMemoryStore(), KEYS)
    for space in range(9):
        await store.put_batch([((f"{space}",), f"{n}", {"text": "boat"}) for n in range(15)])
        assert len(await store.search((f"{space}",), "boat", 20)) == 15
    assert 0 < store._decrypted.size <= 40
