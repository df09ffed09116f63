"""A database written by the version before opens, with everything in it.

`pg_dump --inserts` wrote `archive.sql` from what `fill` had written, without the lines that set the
session, before the connections changed.
"""

from __future__ import annotations

from pathlib import Path

import asyncpg
import pytest

from locus_memory import integrity
from locus_memory.backends.postgresql.backend import PostgreSQLBackend
from locus_memory.events import subscribe
from locus_memory.store.item import Put

pytestmark = pytest.mark.usefixtures("own_tables")

DUMP = Path(__file__).with_name("archive.sql").read_text("utf-8")
FORMER = (
    "UPDATE archived.locus_migrations SET version = version - 1",
    "DROP FUNCTION archived.locus_change_vectors",
)

ITEMS = {
    ("notes",): {
        "plain": {"text": "The walrus sleeps on the ice.", "rank": 1},
        "number": 2**63 - 1,
        "large": 1.5e300,
        "nothing": None,
        "control": "a\x00b\x01c\x02\x02\x01",
        "list": [1, 2.5, "three", None, True, {"four": [4]}],
    },
    ("notes", "ada"): {
        "straße": "Die Straße nach München ist gesperrt.",
        "京都": "京都の寺院は静かです。",
        "Ελλάδα": {"text": "Τώρα η Αθήνα είναι πρωτεύουσα."},
        "العربية": "المكتبة مفتوحة يوم الجمعة",
        "emoji": "\U0001f9ad walrus \U0001f9ca",
    },
    ("long", "x" * 700): {"k" * 700: "cut", "k" * 700 + "é": "cut as well", "k": "short"},
    ("a.b/c", "%_\\'\""): {"%_\\'\"": "quoted"},
}
METADATA = {"kind": "note", "when": "2026-01-02", "deep": {"er": [1, "\x00"]}}
VECTORS = {"north": [0.0, 1.0, 0.0], "east": [1.0, 0.0, 0.0], "between": [0.6, 0.8, 0.0]}
THREAD = "thread é"
STATES = [
    {"told": [f"message {n} of {'many ' * n}" for n in range(count)], "step": count, "x": "\x00"}
    for count in range(1, 13)
]


async def fill(backend):
    """Write everything that the archive holds."""
    store, checkpointer = backend.store, backend.checkpointer
    for namespace, items in ITEMS.items():
        await store.put_batch([(namespace, key, value) for key, value in items.items()])
    await store.put(("notes",), "plain", ITEMS["notes",]["plain"], metadata=METADATA)
    await store.put_batch(
        Put(namespace=("places",), key=key, value={"at": key}, embedding=vector)
        for key, vector in VECTORS.items()
    )
    await store.put(("expiring",), "gone", 1, ttl=0.001)
    for number, state in enumerate(STATES):
        await checkpointer.save(state, THREAD, f"step-{number}", {"n": number})
    await checkpointer.copy_thread(THREAD, "copy")
    await checkpointer.fork(THREAD, "step-5", "fork")


@pytest.fixture
async def restored(url):
    """The URL of a server that has the schema of the dump; it is dropped afterwards."""
    connection = await asyncpg.connect(url)
    try:
        await connection.execute("CREATE EXTENSION IF NOT EXISTS vector SCHEMA public")
        await connection.execute("SET check_function_bodies = off;" + DUMP)
        yield connection
    finally:
        await connection.execute("DROP SCHEMA IF EXISTS archived CASCADE")
        await connection.close()


@pytest.mark.parametrize("statements", [(), FORMER], ids=["as it is", "to migrate"])
async def test_a_database_written_by_the_version_before_opens(url, restored, statements):
    for statement in statements:
        await restored.execute(statement)
    events = []
    stop = subscribe(lambda event: events.append(event.name))
    checkpoints = {"state_type": None}
    async with PostgreSQLBackend(
        url, schema="archived", checkpointer_options=checkpoints
    ) as backend:
        await check_items(backend.store)
        await check_searches(backend.store)
        await check_checkpoints(backend.checkpointer)
        assert not {each.reason async for each in integrity.verify(backend)} - {None}
        await go_on(backend)
    stop()
    assert events == ["checkpoint.removed"]


async def check_items(store):
    for namespace, items in ITEMS.items():
        assert await store.get_batch([(namespace, key) for key in items]) == {
            (namespace, key): value for key, value in items.items()
        }
        assert await store.list_keys(namespace) == sorted(items)
        for key, value in items.items():
            assert (await store.get_item(namespace, key)).value == value
    plain = await store.get_item(("notes",), "plain")
    assert (plain.version, plain.metadata) == (2, METADATA)
    assert await store.get(("expiring",), "gone") is None
    assert await store.list_namespaces() == sorted([*ITEMS, ("places",)])
    for key, vector in VECTORS.items():
        found = await store.get_embedding(("places",), key)
        assert found == pytest.approx(vector)


async def check_searches(store):
    for query, wanted in {
        "walrus": {"plain", "emoji"},
        "munchen": {"straße"},
        "京都": {"京都"},
        "αθηνα": {"Ελλάδα"},
        "المكتبة": {"العربية"},
    }.items():
        assert {
            hit.key for hit in await store.search(("notes",), query, recursive=True)
        } == wanted, query
    hits = await store.search_by_embedding(("places",), [0.1, 1.0, 0.0])
    assert [hit.item.key for hit in hits] == ["north", "between", "east"]
    [found] = await store.search(("notes",), filter={"rank": 1})
    assert found.key == "plain"


async def check_checkpoints(checkpointer):
    names = [f"step-{number}" for number in range(len(STATES))]
    assert sorted(await checkpointer.list_threads()) == sorted([THREAD, "copy", "fork"])
    for thread in (THREAD, "copy"):
        assert await checkpointer.list_checkpoints(thread, 50) == names[::-1]
        for name, state in zip(names, STATES, strict=True):
            assert await checkpointer.load(thread, name) == state
    assert await checkpointer.load("fork") == STATES[5]
    [newest] = await checkpointer.list_with_metadata("fork", 1)
    assert newest.forked_from == (THREAD, "step-5")
    assert newest.metadata == {"n": 5}


async def go_on(backend):
    store, checkpointer = backend.store, backend.checkpointer
    assert await store.put(("notes",), "plain", "new", if_version=2) == 3
    await store.put_with_embedding(("places",), "south", 1, [0.0, -1.0, 0.0])
    assert await store.delete(("notes",), "list")
    await checkpointer.save({"step": 13}, THREAD, expected_parent="step-11")
    await checkpointer.prune(THREAD, keep_last=2)
    assert await checkpointer.load(THREAD, "step-11") == STATES[11]
