from __future__ import annotations

import hashlib
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from locus_memory import AgentState, LLMMemoryManager
from locus_memory.backends.base import store_of
from locus_memory.integrations.langgraph.threads import Place
from locus_memory.registry import open_backend
from locus_memory.retrieval.embedders.marks import without_mark
from locus_memory.store.item import Restored
from locus_memory.transfer.marker import MARKER

ITEMS = ("memory", "sqlite", "postgresql", "redis")
THREADS = (*ITEMS, "file")
LONG_AGO = datetime(2020, 2, 2, 2, 2, 2, 222_222, UTC)
HOSTILE = ("users", "ädå/..", "🦊\x01")


@pytest.fixture
def opened(request, tmp_path):
    """Opens a new, empty backend by its kind and a name."""

    def opened(kind, name):
        label = f"t{hashlib.sha256(f'{tmp_path} {name}'.encode()).hexdigest()[:12]}"
        if kind == "memory":
            return open_backend("memory")
        if kind in ("sqlite", "file"):
            return open_backend(f"{kind}:{tmp_path / name}")
        server = request.getfixturevalue(f"{kind}_server")
        if kind == "redis":
            return open_backend(server.url, key_prefix=f"{label}:")
        folder = tmp_path / f"schema of {name}"
        folder.mkdir(exist_ok=True)
        return open_backend(server.url, schema=request.getfixturevalue("schema_of")(folder))

    return opened


async def fill_items(store):
    """Write items of every form: old, expiring, with vectors, replaced and deleted."""
    for n in range(7):
        await store.put(HOSTILE, f"k{n % 3}", {"n": n, "t": "words of a fox"}, {"v": [n]})
    await store.put(("users",), "none", None)
    await store.put(("users",), "big", {"x": [2**63, -0.5, "\x00", {"": 1e300}]})
    await store.put(("users",), "later", 1, ttl=3600)
    await store.put(("users",), "gone", 1)
    await store.delete(("users",), "gone")
    past = Restored(
        namespace=("past",),
        key="k",
        value="old",
        version=41,
        created_at=LONG_AGO,
        updated_at=LONG_AGO + timedelta(days=1),
    )
    await store.restore([past, replace(past, key="a", updated_at=LONG_AGO + timedelta(days=9))])
    await store.put_batch([(("many",), f"{n:03}", n) for n in range(450)])
    if store.capabilities.semantic_search:
        await store.put_with_embedding(("vectors",), "v", "near", [0.6, 0.8, 0.0])
        await store.put_with_embedding(("vectors",), "w", "far", [0.0, 0.0, 1.0], {"m": 1})
    async with LLMMemoryManager(store) as memory:
        await memory.for_user("ada").remember("I live in Bergen.")
        await memory.for_user("ada").remember("I live in Oslo.")


async def fill_threads(checkpointer):
    """Save threads of every form: long, forked, pruned, of an agent and of LangGraph."""
    state = {"messages": [], "plan": "p" * 500}
    for n in range(90):
        state["messages"].append({"role": "user", "content": f"turn {n} " * 9})
        await checkpointer.save(state, "long", f"c{n}", {"n": n})
    await checkpointer.delete("long", "c70")
    await checkpointer.save({"other": 1}, "long", "c3", {"again": True})
    await checkpointer.fork("long", "c50", "ädå/fork")
    await checkpointer.save({"branch": True}, "ädå/fork")
    await checkpointer.prune("ädå/fork", keep_last=20)
    await checkpointer.save(AgentState(iteration=3), "agent", "a")
    await checkpointer.save({"x": None}, Place.at("graph", "").name, "g")


async def contents(backend):
    """Return all that a backend holds, by the verbs of the two contracts."""
    found = {}
    store = store_of(backend)
    if store is not None:
        for namespace in await store.list_namespaces(None, 1000):
            if namespace == MARKER:
                continue
            items = await store.scan(namespace, 10_000)
            newest = [item.key for item in await store.search(namespace, None, 10_000)]
            found[namespace] = list(map(without_mark, items)), newest
    checkpointer = backend.checkpointer
    for thread_id in await checkpointer.list_threads(1000):
        infos = await checkpointer.list_with_metadata(thread_id, 1000)
        states = [await checkpointer.load(thread_id, info.checkpoint_id) for info in infos]
        heads = [(i.checkpoint_id, i.created_at, i.metadata, i.forked_from) for i in infos]
        found[thread_id] = heads, states
    return found
