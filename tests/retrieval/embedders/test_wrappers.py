from __future__ import annotations

import asyncio

import numpy as np
import pytest

from locus_memory._internal.resource import Resource
from locus_memory.errors import (
    ConfigurationError,
    InvalidArgumentError,
    InvalidEmbeddingError,
    ModelRequestError,
    ModelUnavailableError,
)
from locus_memory.events import subscribe
from locus_memory.retrieval.embedders import (
    BatchingEmbedder,
    CachingEmbedder,
    CallableEmbedder,
    Embedder,
    EmbedderWrapper,
    RetryingEmbedder,
)
from locus_memory.testing import FakeEmbedder

WRAPPERS = [BatchingEmbedder, CachingEmbedder, EmbedderWrapper, RetryingEmbedder]
TEXTS = ["a fox", "dogs bark at night", "cat", "a fox", "elephants"]


@pytest.fixture
def fake():
    return FakeEmbedder()


@pytest.mark.parametrize("wrapper", WRAPPERS)
async def test_a_wrapper_changes_no_vector(fake, wrapper):
    wrapped = wrapper(fake)
    assert isinstance(wrapped, Embedder)
    assert (wrapped.name, wrapped.dimension) == (fake.name, fake.dimension)
    for kind in ("document", "query"):
        expected = np.array(await fake.embed(TEXTS, kind=kind))
        assert np.array(await wrapped.embed(TEXTS, kind=kind)) == pytest.approx(expected)
    assert list(await wrapped.embed([])) == []
    async with wrapped:
        pass


@pytest.mark.parametrize("wrapper", WRAPPERS)
async def test_closing_a_wrapper_closes_what_can_be_closed(wrapper):
    class Closing(FakeEmbedder, Resource):
        seen = ()

        async def open(self):
            self.seen += ("open",)

        async def close(self):
            self.seen += ("close",)

    inner = Closing()
    async with wrapper(inner):
        assert inner.seen == ("open",)
    assert inner.seen == ("open", "close")


async def test_batches_are_bounded_and_sorted_by_length():
    seen = []

    class Watched(FakeEmbedder):
        async def embed(self, texts, *, kind="document"):
            seen.append((list(texts), kind))
            return await super().embed(texts, kind=kind)

    await BatchingEmbedder(Watched(), batch_size=2).embed(TEXTS, kind="query")
    assert seen == [
        (["cat", "a fox"], "query"),
        (["a fox", "elephants"], "query"),
        (["dogs bark at night"], "query"),
    ]
    with pytest.raises(InvalidArgumentError, match="batch_size is at least 1, not 0"):
        BatchingEmbedder(Watched(), batch_size=0)


async def test_each_text_is_embedded_once(fake):
    cached = CachingEmbedder(fake)
    first = await cached.embed(TEXTS)
    assert fake.calls == [4]
    assert await cached.embed(TEXTS[::-1]) == first[::-1]
    assert fake.calls == [4]
    await cached.embed(["cat", "new"])
    await cached.embed(["cat"], kind="query")
    assert fake.calls == [4, 1, 1]


async def test_the_cache_is_bounded(fake):
    cached = CachingEmbedder(fake, max_size=2)
    await cached.embed(["a", "b"])
    await cached.embed(["a"])
    await cached.embed(["c"])
    assert fake.calls == [2, 1]
    await cached.embed(["a", "c"])
    assert fake.calls == [2, 1]
    await cached.embed(["b"])
    assert fake.calls == [2, 1, 1]
    assert len(await cached.embed(list("defgh"))) == 5
    with pytest.raises(InvalidArgumentError, match="max_size is at least 1"):
        CachingEmbedder(fake, max_size=0)


async def test_a_cached_vector_is_the_callers_own(fake):
    cached = CachingEmbedder(fake)
    first = (await cached.embed(["fox"]))[0]
    kept = list(first)
    first[0] = 99.0
    assert await cached.embed(["fox"]) == [kept]


class Failing(FakeEmbedder):
    def __init__(self, *errors):
        super().__init__()
        self.errors = list(errors)

    async def embed(self, texts, *, kind="document"):
        if self.errors:
            raise self.errors.pop(0)
        return await super().embed(texts, kind=kind)


@pytest.fixture
def waits():
    return []


@pytest.fixture
def sleep(waits):
    async def noted(seconds):
        waits.append(seconds)

    return noted


async def test_what_passes_is_tried_again(waits, sleep):
    events = []
    stop = subscribe(events.append)
    inner = Failing(ModelUnavailableError("busy"), TimeoutError(), ConnectionResetError())
    retrying = RetryingEmbedder(inner, longest_wait=3, sleep=sleep)
    vectors = await retrying.embed(["fox"])
    stop()
    assert vectors == await inner.embed(["fox"])
    assert len(waits) == 3
    assert all(0 <= wait <= 3 for wait in waits)
    told = [(event.name, event.attributes["attempt"]) for event in events]
    assert told == [("embedder.retried", attempt) for attempt in (1, 2, 3)]
    assert isinstance(events[0].error, ModelUnavailableError)


async def test_the_last_failure_is_raised_as_it_is(waits, sleep):
    errors = [ModelUnavailableError(str(n)) for n in range(3)]
    retrying = RetryingEmbedder(Failing(*errors), attempts=3, sleep=sleep)
    with pytest.raises(ModelUnavailableError, match="2"):
        await retrying.embed(["fox"])
    assert len(waits) == 2


@pytest.mark.parametrize("error", [ModelRequestError("no"), asyncio.CancelledError()], ids=repr)
async def test_what_does_not_pass_is_not_tried_again(waits, sleep, error):
    with pytest.raises(type(error)):
        await RetryingEmbedder(Failing(error), sleep=sleep).embed(["fox"])
    assert waits == []
    with pytest.raises(InvalidArgumentError, match="attempts is at least 1"):
        RetryingEmbedder(FakeEmbedder(), attempts=0)


def lengths(texts):
    return np.array([[len(text), 1.0] for text in texts])


async def async_lengths(texts):
    return lengths(texts).tolist()


@pytest.mark.parametrize("function", [lengths, async_lengths], ids=["sync", "async"])
async def test_a_function_is_an_embedder(function):
    embedder = CallableEmbedder(function, name="lengths", dimension=2)
    assert isinstance(embedder, Embedder)
    assert await embedder.embed(["ab", ""]) == [[2.0, 1.0], [0.0, 1.0]]
    assert await embedder.embed([]) == []
    other = CallableEmbedder(
        function, name="l", dimension=2, query_function=lambda texts: [[7, 7]] * len(texts)
    )
    assert await other.embed(["ab"], kind="query") == [[7.0, 7.0]]
    assert await other.embed(["ab"]) == [[2.0, 1.0]]


@pytest.mark.parametrize(
    "returned", [None, [1.0], [[1.0]], [[1.0, 2.0]] * 2, [["x", "y"]]], ids=repr
)
async def test_a_function_is_held_to_its_word(returned):
    embedder = CallableEmbedder(lambda _texts: returned, name="odd", dimension=2)
    with pytest.raises(InvalidEmbeddingError, match=r"^odd returned"):
        await embedder.embed(["text"])


def test_a_function_needs_a_name_and_a_dimension():
    for wrong in ({"name": "", "dimension": 2}, {"name": "x", "dimension": 0}):
        with pytest.raises(ConfigurationError, match="takes the model's name"):
            CallableEmbedder(lengths, **wrong)
