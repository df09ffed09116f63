"""Words that no item of a namespace has: a search leaves them out, and finds the same."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from locus_memory.backends.sqlite.store import SQLiteStore

FACTS, TALK = ("facts",), ("talk",)
QUERY = "tea boat monday"

texts = st.sampled_from(["tea", "red tea boat", "monday", "boat on monday", "red", "tea tea"])
steps = st.one_of(
    st.tuples(
        st.just("put"), st.integers(0, 1), st.sampled_from([FACTS, TALK]), st.integers(0, 5), texts
    ),
    st.tuples(st.just("delete"), st.integers(0, 1), st.just(FACTS), st.integers(0, 5)),
    st.tuples(st.just("clear"), st.integers(0, 1), st.just(FACTS)),
)


async def take(store, what, namespace, *given):
    if what == "put":
        await store.put(namespace, str(given[0]), given[1])
    elif what == "delete":
        await store.delete(namespace, str(given[0]))
    else:
        await store.clear_namespace(namespace)


async def hits(store):
    found = await store.search(FACTS, QUERY)
    borrowed = await store.candidates(FACTS, 10, words=QUERY)
    assert [(item.key, score) for item, score in borrowed.by_text] == [
        (item.key, item.score) for item in found
    ]
    return [(item.key, item.value, item.score) for item in found]


@pytest.mark.slow
@given(st.lists(steps, max_size=12))
@settings(max_examples=40, deadline=None)
def test_the_hits_are_those_of_a_store_that_remembers_nothing(taken):
    async def check(folder):
        path = folder / "store.db"
        async with SQLiteStore(path) as one, SQLiteStore(path) as other:
            for what, writer, *given in taken:
                await take((one, other)[writer], what, *given)
                async with SQLiteStore(path) as fresh:
                    wanted = await hits(fresh)
                assert [await hits(one) for _ in range(3)] == [wanted] * 3

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(check(Path(folder)))


async def test_a_word_of_another_namespace_is_left_out_until_a_fact_has_it(tmp_path):
    path = tmp_path / "store.db"
    async with SQLiteStore(path) as store, SQLiteStore(path) as other:
        await store.put(FACTS, "1", "red tea")
        await store.put(TALK, "1", "see you on monday")
        assert [await asked(store, "tea monday") for _ in range(3)] == [
            (["1"], True),
            (["1"], True),
            (["1"], False),
        ]
        await other.put(FACTS, "2", "a boat on monday")
        assert await asked(store, "tea monday") == (["1", "2"], True)


async def asked(store, query):
    """Return the hits, and whether "monday" was searched for."""
    statements = []

    def traced(connection):
        connection.set_trace_callback(statements.append)
        return connection

    # Two threads read, each on its own connection.
    while len(set(await asyncio.gather(*(store._connection.read(traced) for _ in range(8))))) < 2:
        pass
    statements.clear()
    found = await store.search(FACTS, query)
    (ranked,) = [each for each in statements if "bm25" in each]
    return sorted(item.key for item in found), '"monday"' in ranked
