"""A file of the version before opens, and has all of it: items, words, vectors, checkpoints."""

from __future__ import annotations

import gzip
import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from locus_memory.backends.sqlite.backend import SQLiteBackend
from locus_memory.backends.sqlite.schema import MIGRATIONS
from locus_memory.testing.fakes import FakeClock

FORMER = Path(__file__).parent / "former"
"""The file, of schema 4, and what the version that wrote it read from it."""


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "former.db"
    path.write_bytes(gzip.decompress((FORMER / "former.db.gz").read_bytes()))
    return path


@pytest.mark.parametrize("vectors", [2**20, 0, "codes"])
async def test_a_database_written_by_the_version_before_opens(path, vectors):
    expected = json.loads((FORMER / "former.json").read_text())
    clock = FakeClock(expected["now"])
    size = 2**20 if vectors == "codes" else vectors
    options = {"clock": clock, "vector_cache_bytes": size}
    async with SQLiteBackend(
        path, store_options=options, checkpointer_options={"state_type": None}
    ) as backend:
        store, checkpointer = backend.store, backend.checkpointer
        if vectors == "codes":
            store._caches.last.vectors._exact = 0
        for namespace, key, value, metadata, version, created, updated, expires, vector in expected[
            "items"
        ]:
            item = await store.get_item(tuple(namespace), key)
            assert (item.value, item.metadata, item.version) == (value, metadata, version)
            assert (item.created_at.timestamp(), item.updated_at.timestamp()) == (created, updated)
            assert (item.expires_at and item.expires_at.timestamp()) == expires
            assert await store.get_embedding(tuple(namespace), key) == vector
        spaces = await store.list_namespaces(limit=100)
        counts = [len(await store.scan(each, limit=1_000)) for each in spaces]
        assert sum(counts) == len(expected["items"])
        for query, hits in expected["searches"].items():
            found = await store.search(("users",), query, 50, recursive=True)
            assert [[list(hit.namespace), hit.key] for hit in found] == [hit[:2] for hit in hits]
            scores = [hit[2] for hit in hits]
            assert [hit.score for hit in found] == pytest.approx(scores, rel=1e-3, abs=1e-5)
        near = [1.0, 0.5, 0, 0, -1, 0, 0.2, 0.1]
        found = await store.search_by_embedding(("users",), near, 20, recursive=True)
        assert [[list(hit.item.namespace), hit.item.key, hit.score] for hit in found] == expected[
            "near"
        ]
        assert set(await checkpointer.list_threads(limit=100)) == set(expected["threads"])
        for thread, rows in expected["threads"].items():
            assert await checkpointer.list_checkpoints(thread, limit=100) == [
                row[0] for row in rows
            ]
            for checkpoint, state in rows:
                assert await checkpointer.load(thread, checkpoint) == state
        assert await backend.problems() == []
        await store.put_with_embedding(("users",), "new", "boats", near)
        await store.delete(("other",), expected["items"][-1][1])
        hits = await store.search_by_embedding(("users",), near, 1, recursive=True)
        assert hits[0].item.key == "new"
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (len(MIGRATIONS),)
