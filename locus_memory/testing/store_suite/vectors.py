"""The store suite: vectors."""

from __future__ import annotations

import math
import random
from collections.abc import AsyncIterator
from typing import Any, ClassVar

import numpy as np
import pytest
import pytest_asyncio
from numpy.typing import NDArray

from locus_memory.errors import InvalidArgumentError, InvalidEmbeddingError, VersionConflictError
from locus_memory.store.base import BaseStore
from locus_memory.store.item import Namespace, Put, SemanticSearchResult
from locus_memory.testing.fakes import FakeClock
from locus_memory.testing.store_suite.base import LONG, StoreSuite, axis, held, need, refused

__all__ = ["VectorTests"]

NS = ("vectors",)

NOT_VECTORS: list[Any] = [
    *(
        [],
        [math.nan, 1.0],
        [math.inf, 1.0],
        [0.0, 0.0],
        [[1.0, 0.0]],
        "abc",
        None,
        1.0,
        [10**400, 1],
    ),
]


def keys(hits: list[SemanticSearchResult]) -> list[str]:
    """Return the keys of the hits, in order."""
    return [hit.item.key for hit in hits]


def between(store: BaseStore, share: float) -> list[float]:
    """Return the unit vector whose cosine with `axis(store, 0)` is `share`."""
    vector = axis(store, 0)
    vector[0], vector[1] = share, math.sqrt(1 - share * share)
    return vector


class VectorTests(StoreSuite):
    """`put_with_embedding`, `get_embedding` and `search_by_embedding`.

    Attributes:
        min_recall: The share of the exact ten best that a search must find; a store whose
            index is approximate may lower it to 0.95.
    """

    min_recall: ClassVar[float] = 1.0

    @pytest_asyncio.fixture
    async def vectors(self, store: BaseStore) -> AsyncIterator[BaseStore]:
        """The store, if it has semantic search."""
        need(store, "semantic_search")
        yield store

    async def test_the_nearest_comes_first(self, vectors: BaseStore) -> None:
        for share in (0.5, 1.0, 0.0, -1.0, 0.9):
            await vectors.put_with_embedding(NS, str(share), share, between(vectors, share))
        hits = await vectors.search_by_embedding(NS, axis(vectors, 0))
        assert keys(hits) == ["1.0", "0.9", "0.5", "0.0", "-1.0"]
        assert [hit.distance for hit in hits] == pytest.approx([0, 0.1, 0.5, 1, 2], abs=1e-5)
        assert [hit.score for hit in hits] == pytest.approx([1, 0.9, 0.5, 0, 0], abs=1e-5)
        assert [hit.item.score for hit in hits] == [hit.score for hit in hits]
        assert all(hit.score == max(0.0, 1.0 - hit.distance) for hit in hits)
        assert hits[0].item.value == 1.0

    async def test_only_the_direction_counts(self, vectors: BaseStore) -> None:
        for scale in (1e-200, 1e-30, 1.0, 1e30, 1e200):
            vector = [scale * part for part in between(vectors, 0.5)]
            await vectors.put_with_embedding(NS, str(scale), scale, vector)
            [hit] = await vectors.search_by_embedding(NS, [scale * x for x in axis(vectors, 0)], 1)
            assert hit.score == pytest.approx(0.5, abs=1e-5)

    async def test_the_threshold(self, vectors: BaseStore) -> None:
        for share in (0.2, 0.5, 0.8):
            await vectors.put_with_embedding(NS, str(share), share, between(vectors, share))
        query = axis(vectors, 0)
        assert keys(await vectors.search_by_embedding(NS, query, 10, 0.4)) == ["0.8", "0.5"]
        assert keys(await vectors.search_by_embedding(NS, query, 10, 0.9)) == []
        assert keys(await vectors.search_by_embedding(NS, query, 1, 0.1, offset=2)) == ["0.2"]

    @pytest.mark.parametrize("threshold", ["a", "0.5", True, math.nan, [0.5], 10**400], ids=type)
    async def test_a_bad_threshold_is_refused(self, vectors: BaseStore, threshold: Any) -> None:
        query = axis(vectors, 0)
        await vectors.put_with_embedding(NS, "k", 1, query)
        await refused(
            InvalidArgumentError,
            vectors.search_by_embedding(NS, query, 10, threshold),
            vectors.search_by_embedding(("empty",), query, 10, threshold),
        )

    async def test_any_large_limit_means_all_vectors(self, vectors: BaseStore) -> None:
        query = axis(vectors, 0)
        await vectors.put_with_embedding(NS, "k", 1, query)
        for limit in (2**31, 2**62, 2**63 - 1, 2**63, 10**30):
            assert keys(await vectors.search_by_embedding(NS, query, limit)) == ["k"]
            assert await vectors.search_by_embedding(NS, query, limit, offset=limit) == []

    async def test_the_vector_comes_back_at_unit_length(self, vectors: BaseStore) -> None:
        vector = [3 * part for part in between(vectors, 0.6)]
        await vectors.put_with_embedding(NS, "k", 1, vector)
        found = await vectors.get_embedding(NS, "k")
        assert found is not None
        assert found == pytest.approx([part / 3 for part in vector], abs=1e-6)
        await vectors.put(NS, "plain", 1)
        assert await vectors.get_embedding(NS, "plain") is None
        assert await vectors.get_embedding(NS, "missing") is None

    async def test_it_is_an_item_like_any_other(self, vectors: BaseStore, clock: FakeClock) -> None:
        vector = axis(vectors, 0)
        await vectors.put(NS, "k", "old")
        clock.advance(5)
        version = await vectors.put_with_embedding(
            NS, "k", {"text": "fox"}, vector, {"m": 1}, if_version=1
        )
        assert version == 2
        item = await held(vectors, NS, "k")
        assert (item.value, item.metadata, item.version) == ({"text": "fox"}, {"m": 1}, 2)
        assert (item.updated_at - item.created_at).total_seconds() == 5
        await refused(
            VersionConflictError,
            vectors.put_with_embedding(NS, "k", "lost", axis(vectors, 1), if_version=1),
        )
        [hit] = await vectors.search_by_embedding(NS, vector)
        assert (hit.item.value, hit.item.version) == ({"text": "fox"}, 2)
        assert hit.score == pytest.approx(1)

    async def test_text_search_sees_it_too(self, vectors: BaseStore) -> None:
        need(vectors, "search")
        await vectors.put_with_embedding(NS, "a", "fox", axis(vectors, 0))
        await vectors.put_with_embedding(NS, "b", "fox", axis(vectors, 1), text="dog")
        assert [item.key for item in await vectors.search(NS, "fox")] == ["a"]
        assert [item.key for item in await vectors.search(NS, "dog")] == ["b"]

    async def test_old_vectors_are_gone(self, vectors: BaseStore) -> None:
        query = axis(vectors, 0)
        for key in ("replaced", "dropped", "batched", "deleted", "kept"):
            await vectors.put_with_embedding(NS, key, key, query)
        assert len(await vectors.search_by_embedding(NS, query)) == 5
        await vectors.put_with_embedding(NS, "replaced", 2, axis(vectors, 1))
        await vectors.put(NS, "dropped", 2)
        await vectors.put_batch([(NS, "batched", 2)])
        await vectors.delete(NS, "deleted")
        hits = await vectors.search_by_embedding(NS, query)
        assert keys(hits) == ["kept", "replaced"]
        assert hits[1].score == pytest.approx(0, abs=1e-6)
        assert await vectors.get_embedding(NS, "dropped") is None
        await vectors.put(NS, "deleted", 2)
        assert await vectors.get_embedding(NS, "deleted") is None
        await vectors.clear_namespace(NS)
        assert await vectors.search_by_embedding(NS, query) == []

    @pytest.mark.parametrize("bad", NOT_VECTORS, ids=repr)
    async def test_what_is_no_vector_is_refused(self, vectors: BaseStore, bad: Any) -> None:
        await refused(
            InvalidEmbeddingError,
            vectors.put_with_embedding(NS, "k", 1, bad),
            vectors.search_by_embedding(NS, bad),
        )
        if bad is not None:
            put = Put(namespace=NS, key="k", value=1, embedding=bad)
            await refused(InvalidEmbeddingError, vectors.put_batch([put]))
        assert not await vectors.exists(NS, "k")

    async def test_the_dimension_is_kept(self, vectors: BaseStore) -> None:
        await vectors.put_with_embedding(NS, "k", 1, axis(vectors, 0))
        longer = [*axis(vectors, 0), 0.0]
        if vectors.capabilities.embedding_dimension is not None:
            await refused(
                InvalidEmbeddingError,
                vectors.put_with_embedding(NS, "other", 1, longer),
                vectors.search_by_embedding(NS, longer),
            )
            assert not await vectors.exists(NS, "other")
        else:
            await refused(
                InvalidEmbeddingError,
                vectors.search_by_embedding(NS, longer),
                vectors.search_by_embedding(NS, longer, 0),
            )
            await vectors.put_with_embedding(NS, "other", 1, longer)
            assert keys(await vectors.search_by_embedding(NS, longer)) == ["other"]
            assert keys(await vectors.search_by_embedding(NS, axis(vectors, 0))) == ["k"]

    async def test_a_filter_beside_a_vector_loses_no_match(self, vectors: BaseStore) -> None:
        await vectors.put_batch(
            [
                Put(
                    namespace=NS,
                    key=f"{n:03}",
                    value={"n": n},
                    metadata={"wanted": n == 499},
                    embedding=between(vectors, 1 - n / 499),
                )
                for n in range(500)
            ]
        )
        query = axis(vectors, 0)
        for condition in ({"wanted": True}, {"n": 499}):
            hits = await vectors.search_by_embedding(NS, query, 5, metadata_filter=condition)
            assert keys(hits) == ["499"]
        some = await vectors.search_by_embedding(
            NS, query, 7, metadata_filter={"n": {"$gte": 480}}, offset=14
        )
        assert keys(some) == [f"{n}" for n in range(494, 500)]

    async def test_pages_of_the_nearest_are_exact(self, vectors: BaseStore) -> None:
        shares = [n / 24 for n in range(25)]
        await vectors.put_batch(
            [
                Put(namespace=NS, key=f"{n:02}", value=n, embedding=between(vectors, share))
                for n, share in enumerate(shares)
            ]
        )
        query = axis(vectors, 0)
        pages = [
            await vectors.search_by_embedding(NS, query, 10, offset=n) for n in (0, 10, 20, 30)
        ]
        assert [key for page in pages for key in keys(page)] == [
            f"{n:02}" for n in reversed(range(25))
        ]
        assert await vectors.search_by_embedding(NS, query, 0) == []

    async def test_a_vector_search_has_no_hidden_cap(self, vectors: BaseStore) -> None:
        vector = axis(vectors, 0)
        await vectors.put_batch(
            [Put(namespace=NS, key=f"{n}", value=n, embedding=vector) for n in range(LONG)]
        )
        hits = await vectors.search_by_embedding(NS, vector, LONG + 100)
        assert sorted(hit.item.value for hit in hits) == list(range(LONG))

    async def test_recursive_vector_search_sees_descendants_only(self, vectors: BaseStore) -> None:
        need(vectors, "list_namespaces")
        names: list[Namespace] = [NS, (*NS, "x"), (*NS, "x", "y"), ("vectors2",), ("other",)]
        for index, namespace in enumerate(names):
            await vectors.put_with_embedding(
                namespace, str(index), index, between(vectors, 0.1 * index)
            )
        query = axis(vectors, 0)
        assert keys(await vectors.search_by_embedding(NS, query)) == ["0"]
        hits = await vectors.search_by_embedding(NS, query, recursive=True)
        assert keys(hits) == ["2", "1", "0"]
        assert hits[0].item.namespace == (*NS, "x", "y")

    async def test_recall_beside_a_far_larger_neighbour(self, vectors: BaseStore) -> None:
        dimension = vectors.capabilities.embedding_dimension or 16
        numbers = np.random.default_rng(7)
        mine = numbers.normal(size=(200, dimension))
        neighbours = numbers.normal(size=(2000, dimension))
        await put_all(vectors, NS, mine)
        await put_all(vectors, (*NS, "large"), neighbours[:1000])
        await put_all(vectors, ("vectors-large",), neighbours[1000:])
        found = wanted = 0
        for query in numbers.normal(size=(20, dimension)):
            cosines = mine @ query / np.linalg.norm(mine, axis=1)
            best = {str(n) for n in np.argsort(-cosines)[:10]}
            hits = await vectors.search_by_embedding(NS, query.tolist(), 10)
            found += len(best & set(keys(hits)))
            wanted += len(best)
        assert found / wanted >= self.min_recall

    async def test_writes_between_searches_are_seen(self, vectors: BaseStore) -> None:
        dice = random.Random(3)  # noqa: S311 - a reproducible order, not a secret
        model: dict[str, int] = {}
        for step in range(60):
            key = str(dice.randrange(12))
            if dice.random() < 0.3:
                await vectors.delete(NS, key)
                model.pop(key, None)
            else:
                await vectors.put_with_embedding(NS, key, step, axis(vectors, step % 4))
                model[key] = step % 4
            query = axis(vectors, step % 4)
            hits = await vectors.search_by_embedding(NS, query, 20, 0.5)
            assert sorted(keys(hits)) == sorted(k for k, side in model.items() if side == step % 4)


async def put_all(store: BaseStore, namespace: Namespace, vectors: NDArray[np.float64]) -> None:
    """Put an item for each row; its key is the row's number."""
    await store.put_batch(
        [
            Put(namespace=namespace, key=str(n), value=n, embedding=row.tolist())
            for n, row in enumerate(vectors)
        ]
    )
