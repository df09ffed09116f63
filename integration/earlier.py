"""A database that an earlier version wrote: what it has to show when it is opened now."""

from __future__ import annotations

import gzip
import json

import pytest


def read(folder):
    """Return what was recorded of the earlier version, which wrote both contracts."""
    return json.loads(gzip.decompress((folder / "earlier.json.gz").read_bytes()))


async def check_items(store, expected):
    """Read each item by its name and by a scan."""
    names = {tuple(each["namespace"]): [] for each in expected}
    for each in expected:
        names[tuple(each["namespace"])].append(each)
    assert await store.list_namespaces() == list(names)
    for namespace, wanted in names.items():
        keys = [each["key"] for each in wanted]
        assert await store.list_keys(namespace) == keys
        scanned = [item.to_dict() for item in await store.scan(namespace)]
        read = [(await store.get_item(namespace, key)).to_dict() for key in keys]
        plain = [{name: v for name, v in each.items() if name != "embedding"} for each in wanted]
        assert scanned == read == plain
        for each in wanted:
            if each["embedding"] is not None:
                found = await store.get_embedding(namespace, each["key"])
                assert found == pytest.approx(each["embedding"])


async def check_threads(checkpointer, expected):
    """List each thread, and load the states that were recorded, and all others."""
    assert await checkpointer.list_threads() == list(expected)
    for thread, each in expected.items():
        listed = await checkpointer.list_with_metadata(thread, 1000)
        found = [[one.checkpoint_id, one.sequence, one.metadata] for one in listed]
        assert found == each["checkpoints"]
        for name, state in each["states"].items():
            assert await checkpointer.load(thread, name) == state
        for one in listed:
            assert await checkpointer.load(thread, one.checkpoint_id) is not None


async def check_writes(backend, items, threads):
    """Change what is there: versions go on, and deltas build on records of the earlier version."""
    store, checkpointer = backend.store, backend.checkpointer
    for each in items:
        name = tuple(each["namespace"]), each["key"]
        assert await store.put(*name, "new") == each["version"] + 1
        assert await store.get(*name) == "new"
        assert await store.delete(*name, if_version=each["version"] + 1)
    assert await store.list_namespaces() == []
    for thread, each in threads.items():
        newest, _, _ = each["checkpoints"][0]
        state = {**each["states"][newest], "more": 1}
        name = await checkpointer.save(state, thread, expected_parent=newest)
        assert await checkpointer.load(thread, name) == state
        assert await checkpointer.delete(thread, newest)
        await checkpointer.prune(thread, keep_last=2)
        assert await checkpointer.load(thread, name) == state
        assert await checkpointer.delete(thread)
    await checkpointer.vacuum()
    assert await checkpointer.list_threads() == []
