"""Long texts: read in pieces, away from the event loop, and exactly as short ones."""

from __future__ import annotations

import asyncio
import threading

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from locus_memory.errors import InvalidArgumentError, ValueNotSerializableError
from locus_memory.registry import get_store
from locus_memory.store import text as texts
from locus_memory.store.item import Put
from locus_memory.store.words.long_texts import LONG, are_long
from locus_memory.testing.store_suite.base import json_values

NS = ("large",)
WORDS = "the quick brown fox jumps over lazy dogs in Zürich "
BIG = WORDS * (LONG // len(WORDS) + 1000)


@pytest.fixture
async def store(provider):
    where, options = provider
    async with get_store(where, **options) as store:
        yield store


@pytest.fixture
def read_in_loop(monkeypatch):
    """How many characters the thread of the event loop has split into words."""
    loop, read, plain = threading.current_thread(), [], texts._words

    def watched(text, **options):
        if threading.current_thread() is loop:
            read.append(len(text))
        return plain(text, **options)

    monkeypatch.setattr(texts, "_words", watched)
    return read


async def put_whole(store, value, text):
    await store.put(NS, "k", value, text=text)


async def put_in_batch(store, value, text):
    await store.put_batch([Put(namespace=NS, key="k", value=value, text=text)])


async def put_among_others(store, value, text):
    puts = [Put(namespace=NS, key=f"{n}", value=1) for n in range(3)]
    await store.put_batch([*puts, Put(namespace=NS, key="k", value=value, text=text)])


async def put_as_tuples(store, value, text):
    if text is None:
        await store.put_batch([(NS, "k", value), (NS, "l", 1)])
    else:
        await store.put(NS, "k", value, text=text)


async def put_all_or_nothing(store, value, text):
    await store.write_batch([Put(namespace=NS, key="k", value=value, text=text, if_version=0)])


async def put_with_vector(store, value, text):
    await store.put_with_embedding(NS, "k", value, [1.0] * 8, text=text)


@pytest.mark.parametrize(
    "write",
    [
        put_whole,
        put_in_batch,
        put_among_others,
        put_as_tuples,
        put_all_or_nothing,
        put_with_vector,
    ],
)
@pytest.mark.parametrize(
    ("value", "text"),
    [(BIG, None), ({"a": [BIG[:1000]] * (LONG // 900)}, None), ("short", BIG)],
    ids=["string", "document", "text"],
)
async def test_long_texts_are_not_read_in_the_event_loop(store, read_in_loop, write, value, text):
    await write(store, value, text)
    assert sum(read_in_loop) < LONG // 10
    item = await store.get_item(NS, "k")
    assert (item.value, item.version) == (value, 1)
    for query in ("foxes", "zurich", "LAZY"):
        assert [item.key for item in await store.search(NS, query)] == ["k"]


async def test_a_long_query_is_not_read_in_the_event_loop(store, read_in_loop):
    await store.put(NS, "k", "a fox")
    assert [item.key for item in await store.search(NS, BIG)] == ["k"]
    assert sum(read_in_loop) < LONG // 10


async def test_many_short_texts_are_long_together(store, read_in_loop):
    text = WORDS * 20
    await store.put_batch([(NS, f"{n}", {"text": text}) for n in range(2 * LONG // len(text))])
    assert sum(read_in_loop) < LONG // 10
    assert len(await store.search(NS, "fox", 5)) == 5


async def test_what_is_put_is_what_it_was_when_the_call_began(store):
    value, metadata = {"a": [BIG], "n": 1}, {"m": [1]}
    call = asyncio.create_task(store.put(NS, "k", value, metadata))
    await asyncio.sleep(0)
    value["a"].append("later")
    value["n"], metadata["m"][0] = 2, 2
    await call
    item = await store.get_item(NS, "k")
    assert item.value == {"a": [BIG], "n": 1}
    assert item.metadata == {"m": [1]}


async def test_what_is_long_is_refused_as_what_is_short(store):
    for value in ([BIG, {1}], {"a": BIG, "b": float("nan")}):
        with pytest.raises(ValueNotSerializableError):
            await store.put(NS, "k", value)
    with pytest.raises(InvalidArgumentError):
        await store.put(NS, "k", 1, text=BIG + "\ud800")
    with pytest.raises(InvalidArgumentError):
        await store.put(NS, "", BIG)
    with pytest.raises(InvalidArgumentError):
        await store.search(NS, BIG + "\ud800")
    assert await store.scan(NS) == []


@pytest.mark.slow
@given(json_values)
def test_short_values_are_not_long(value):
    assert not are_long([value] * 3, ["text", None])


def test_the_size_of_a_value_is_counted_only_so_far():
    loop = [0]
    loop.append(loop)
    assert are_long([loop, loop])
    assert are_long([["x" * 1000] * LONG])
    assert are_long([[[]] * (LONG + 1)])
    assert not are_long(["x" * LONG])
    assert are_long(["x" * LONG, "x"])
    assert are_long([None], ["x" * (LONG + 1)])


pieces = st.text("aB é́ぁ゙漢ﬁ _1ς\u1100\u1161\u11a8\n\x00'", max_size=60) | st.text(max_size=60)


@given(pieces)
@example("e \u0301x  \u0301")
@example(":\u048a0\u013f 0")
def test_a_text_in_pieces_has_the_words_it_has_as_a_whole(text):
    with pytest.MonkeyPatch.context() as patch:
        whole = (
            sorted(texts.tokens(text)),
            # The variants of words follow those of their piece.
            sorted(texts.query_words(text)),
            sorted(texts.searchable(text, None).split()),
        )
        patch.setattr(texts, "_PIECE", 4)
        assert "".join(texts._pieces(text)) == text
        in_pieces = (
            sorted(texts.tokens(text)),
            sorted(texts.query_words(text)),
            sorted(texts.searchable(text, None).split()),
        )
        assert in_pieces == whole
        assert texts.count_tokens(text) == texts.Counter(texts.tokens(text))
