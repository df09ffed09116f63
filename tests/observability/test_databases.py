"""The spans and durations of stores and checkpointers."""

from __future__ import annotations

import asyncio

import pytest
from opentelemetry.trace import SpanKind, StatusCode

from locus_memory import get_checkpointer, get_store, open_backend
from locus_memory.backends.inmemory import InMemoryStore, MemoryCheckpointer
from locus_memory.backends.oracle import OracleStore
from locus_memory.backends.postgresql import PostgreSQLStore
from locus_memory.backends.redis import RedisCheckpointer, RedisStore
from locus_memory.backends.sqlite import SQLiteStore
from locus_memory.errors import VersionConflictError
from locus_memory.observability.databases import (
    CHECKPOINTER_VERBS,
    STORE_VERBS,
    database_attributes,
)
from locus_memory.store.base import BaseStore
from locus_memory.store.item import Delete, Put, Restored, StoreCapabilities, timestamp
from locus_memory.store.wrappers import EncryptingStore, StoreWrapper

NS = ("users", "ada")
PUT = {"db.operation.name": "put", "db.collection.name": "items"}
DURATION = "db.client.operation.duration"

ITEM = Put(namespace=NS, key="k", value=1)
MOMENT = timestamp(1)
RESTORED = Restored(namespace=NS, key="r", value=1, version=5, created_at=MOMENT, updated_at=MOMENT)

CALLS = {
    "get": lambda store: store.get(NS, "k"),
    "get_item": lambda store: store.get_item(NS, "k"),
    "exists": lambda store: store.exists(NS, "k"),
    "scan": lambda store: store.scan(NS, 5, prefix="k"),
    "list_keys": lambda store: store.list_keys(NS),
    "list_namespaces": lambda store: store.list_namespaces(),
    "get_batch": lambda store: store.get_batch([(NS, "k")]),
    "search": lambda store: store.search(NS, "fox"),
    "get_embedding": lambda store: store.get_embedding(NS, "k"),
    "search_by_embedding": lambda store: store.search_by_embedding(NS, [1.0]),
    "put": lambda store: store.put(NS, "k", 1),
    "put_with_embedding": lambda store: store.put_with_embedding(NS, "k", 1, [1.0]),
    "delete": lambda store: store.delete(NS, "k"),
    "clear_namespace": lambda store: store.clear_namespace(NS, recursive=True),
    "compact": lambda store: store.compact(),
    "put_batch": lambda store: store.put_batch([ITEM]),
    "delete_batch": lambda store: store.delete_batch([(NS, "k")]),
    "write_batch": lambda store: store.write_batch([ITEM]),
    "restore": lambda store: store.restore([RESTORED]),
}


class FourVerbStore(BaseStore):
    """A store of another library, with the least that it may have."""

    capabilities = StoreCapabilities()

    def __init__(self):
        self.items = {}

    async def put(self, namespace, key, value, metadata=None, **options):
        self.items[key] = value
        return 1

    async def get_item(self, namespace, key):
        return None

    async def delete(self, namespace, key, **options):
        return self.items.pop(key, None) is not None

    async def scan(self, namespace, limit=100, **options):
        return []


async def test_a_verb_is_a_client_span(instrumented, tmp_path):
    path = f"{tmp_path}/a.db"
    async with get_store(f"sqlite:{path}") as store:
        await store.put(NS, "diet", {"secret": "hunter2"})
    [span] = instrumented.spans
    assert (span.name, span.kind) == ("put items", SpanKind.CLIENT)
    assert dict(span.attributes) == {"db.system.name": "sqlite", "db.namespace": path, **PUT}
    assert span.status.status_code == StatusCode.UNSET
    assert span.instrumentation_scope.name == "locus_memory"


async def test_a_verb_is_a_value_of_the_histogram(instrumented):
    store = InMemoryStore()
    for _ in range(3):
        await store.put(NS, "k", 1)
    [(key, point)] = instrumented.points(DURATION).items()
    assert dict(key) == {"db.system.name": "memory", **PUT}
    assert point.count == 3
    assert 0 < point.sum < 10
    assert point.explicit_bounds == (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0)


async def test_metrics_need_no_spans(recorded):
    undo = recorded.instrument(database_spans=False)
    store = InMemoryStore()
    await store.put(NS, "k", 1)
    with pytest.raises(VersionConflictError):
        await store.put(NS, "k", 2, if_version=7)
    undo()
    assert recorded.spans == ()
    counts = {dict(key).get("error.type"): p.count for key, p in recorded.points(DURATION).items()}
    assert counts == {None: 1, "VersionConflictError": 1}


async def test_an_error_is_named_by_its_class(instrumented):
    store = InMemoryStore()
    await store.put(NS, "k", 1)
    instrumented.clear()
    with pytest.raises(VersionConflictError):
        await store.put(NS, "k", 2, if_version=7)
    [span] = instrumented.spans
    assert span.status.status_code == StatusCode.ERROR
    assert span.attributes["error.type"] == "VersionConflictError"
    assert span.events == ()
    keys = [dict(key) for key in instrumented.points(DURATION)]
    assert [key.get("error.type") for key in keys] == [None, "VersionConflictError"]


async def test_a_cancelled_call_ends_its_span(instrumented):
    class Endless(FourVerbStore):
        async def get_item(self, namespace, key):
            await asyncio.Event().wait()

    call = asyncio.create_task(Endless().get_item(NS, "k"))
    await asyncio.sleep(0)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    [span] = instrumented.spans
    assert span.attributes["error.type"] == "CancelledError"


@pytest.mark.parametrize("verb", STORE_VERBS)
async def test_every_verb_of_a_store_is_recorded_once(instrumented, verb):
    store = InMemoryStore()
    await CALLS[verb](store)
    [span] = instrumented.spans
    assert span.attributes["db.operation.name"] == verb
    assert span.name == f"{verb} items"


async def test_every_verb_of_a_checkpointer_is_recorded_once(instrumented):
    checkpointer = MemoryCheckpointer(state_type=None)
    done = {}

    async def call(verb, *args, **kwargs):
        instrumented.clear()
        found = await getattr(checkpointer, verb)(*args, **kwargs)
        done[verb] = [dict(span.attributes) for span in instrumented.spans]
        return found

    saved = await call("save", {"n": 1}, "t")
    await call("load", "t")
    await call("list_checkpoints", "t")
    await call("list_with_metadata", "t")
    await call("get_metadata", "t")
    await call("exists", "t")
    await call("list_threads")
    await call("query_by_metadata", {"a": 1})
    await call("copy_thread", "t", "copy")
    await call("fork", "t", saved, "fork")
    await call("prune", "t", keep_last=1)
    await call("vacuum")
    await call("get_storage_stats", "t")
    await call("delete", "t")
    assert set(done) == set(CHECKPOINTER_VERBS)
    for verb, found in done.items():
        assert found == [
            {
                "db.system.name": "memory",
                "db.operation.name": verb,
                "db.collection.name": "checkpoints",
            }
        ]


async def test_what_a_verb_does_with_other_verbs_is_one_operation(instrumented):
    store = FourVerbStore()
    await store.put_batch([(NS, str(n), n) for n in range(3)])
    assert [span.name for span in instrumented.spans] == ["put_batch items"]
    assert instrumented.spans[0].attributes["db.operation.batch.size"] == 3


async def test_a_batch_of_one_has_no_size(instrumented):
    await InMemoryStore().write_batch([Put(namespace=NS, key="k", value=1)])
    await InMemoryStore().delete_batch(iter([(NS, "k"), (NS, "l")]))
    await InMemoryStore().write_batch(
        [Put(namespace=NS, key="k", value=1), Delete(namespace=NS, key="l")]
    )
    sizes = [span.attributes.get("db.operation.batch.size") for span in instrumented.spans]
    assert sizes == [None, None, 2]


async def test_a_wrapper_has_no_span_of_its_own(instrumented):
    store = EncryptingStore(StoreWrapper(InMemoryStore()), {"k": b"k" * 16}, active="k")
    await store.put(NS, "k", 1)
    assert [span.name for span in instrumented.spans] == ["put items"]


async def test_a_span_inside_is_its_child(instrumented):
    tracer = instrumented.tracers.get_tracer("driver")

    class Driven(FourVerbStore):
        async def get_item(self, namespace, key):
            with tracer.start_as_current_span("SELECT"):
                return await super().get_item(namespace, key)

    with tracer.start_as_current_span("request"):
        await Driven().get_item(NS, "k")
    select, get, request = instrumented.spans
    assert select.parent.span_id == get.context.span_id
    assert get.parent.span_id == request.context.span_id


async def test_open_objects_and_later_classes_are_recorded(recorded, tmp_path):
    store = InMemoryStore()
    undo = recorded.instrument()

    class Later(FourVerbStore):
        async def put(self, *args, **kwargs):
            return await super().put(*args, **kwargs)

    await store.put(NS, "k", 1)
    await Later().put(NS, "k", 1)
    assert [span.name for span in recorded.spans] == ["put items"] * 2
    undo()
    await Later().put(NS, "k", 1)
    await store.put(NS, "k", 1)
    assert len(recorded.spans) == 2


async def test_it_is_undone_without_a_trace(recorded):
    before = {name: vars(BaseStore).get(name) for name in (*STORE_VERBS, "__init_subclass__")}
    put = InMemoryStore.put
    undo = recorded.instrument()
    assert InMemoryStore.put is not put
    undo()
    undo()
    assert InMemoryStore.put is put
    after = {name: vars(BaseStore).get(name) for name in (*STORE_VERBS, "__init_subclass__")}
    assert before == after


async def test_both_halves_of_a_backend_are_recorded(instrumented, tmp_path):
    async with open_backend(f"sqlite:{tmp_path}/a.db") as backend:
        await backend.store.get(NS, "k")
        await backend.checkpointer.save({"n": 1}, "t")
    assert [span.name for span in instrumented.spans] == ["get items", "save checkpoints"]
    assert len({span.attributes["db.namespace"] for span in instrumented.spans}) == 1


async def test_a_folder_is_named(instrumented, tmp_path):
    async with get_checkpointer(f"file:{tmp_path}/c") as checkpointer:
        await checkpointer.save({"n": 1}, "t")
    [found] = instrumented.named("save checkpoints")
    assert (found["db.system.name"], found["db.namespace"]) == ("file", f"{tmp_path}/c")


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (
            lambda: PostgreSQLStore("postgresql://ada:hunter2@db.example:5433/app"),
            {
                "db.system.name": "postgresql",
                "db.namespace": "app",
                "server.address": "db.example",
                "server.port": 5433,
            },
        ),
        (
            lambda: PostgreSQLStore("postgresql://a:1,b:2/app"),
            {"db.system.name": "postgresql", "db.namespace": "a:1,b:2/app"},
        ),
        (
            lambda: PostgreSQLStore("app"),
            {"db.system.name": "postgresql", "db.namespace": "app"},
        ),
        (
            lambda: RedisStore("redis://:hunter2@[::1]:6380/3"),
            {
                "db.system.name": "redis",
                "db.namespace": "3",
                "server.address": "::1",
                "server.port": 6380,
            },
        ),
        (
            lambda: RedisCheckpointer("localhost:6379").storage,
            {"db.system.name": "redis", "server.address": "localhost", "server.port": 6379},
        ),
        (
            lambda: OracleStore("ada:hunter2@db.example:1521/app"),
            {
                "db.system.name": "oracle.db",
                "db.namespace": "app",
                "server.address": "db.example",
                "server.port": 1521,
            },
        ),
        (
            lambda: SQLiteStore("a.db"),
            {"db.system.name": "sqlite", "db.namespace": "a.db"},
        ),
        (InMemoryStore, {"db.system.name": "memory"}),
    ],
)
def test_a_database_is_named_without_its_password(make, expected):
    owner = make()
    found = database_attributes(type(owner), owner.place)
    assert found == expected
    assert "hunter2" not in str(found)


def test_a_store_of_another_library_is_named_by_its_class():
    assert database_attributes(FourVerbStore, "") == {"db.system.name": "FourVerbStore"}
