"""Every statement of the Oracle backend, with the binds of the call that sends it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from locus_memory.backends.oracle import records, schema
from locus_memory.backends.oracle.checkpoints import _advance, _claim
from locus_memory.backends.oracle.items import queries
from locus_memory.backends.oracle.items.items import _binds, _in_lists, _State, _whole
from locus_memory.backends.oracle.items.naming import Address
from locus_memory.backends.oracle.items.queries import Arguments
from locus_memory.backends.oracle.items.ranges import Scope, key_condition
from locus_memory.backends.oracle.items.rows import ItemRow
from locus_memory.backends.oracle.records import thread_row, to_rewrite, to_row
from locus_memory.backends.oracle.schema import Names
from locus_memory.backends.oracle.search.filters import compile_filter
from locus_memory.backends.selection import KeyRange
from locus_memory.checkpoint.base import UNSET
from locus_memory.checkpoint.record import Record, RecordHead
from locus_memory.store.filters import parse_filter
from locus_memory.store.item import Put

NOW = datetime(2026, 11, 23, tzinfo=UTC)
NAMES = Names("AGENTS", "LOCUS_")
FILTER = {"type": "note", "n": {"$in": [1, 2]}, "$or": [{"a": True}, {"b": {"$gt": 1}}]}


def item_row():
    value = {"text": "She eats no fish."}
    put = Put(namespace=("users", "ada"), key="diet", value=value, metadata={"n": 1}, ttl=60)
    return ItemRow.of(Address.of(put.namespace, put.key), put, b"\0\0\x80?" * 3)


def record():
    head = RecordHead(
        thread_id="t",
        checkpoint_id="c",
        revision=1,
        base=None,
        level=0,
        sequence=0,
        created_at=1.5,
        metadata={},
        size=0,
        stored_size=0,
    )
    return Record.pack(b"{}", head, 6)


def of_the_schema() -> Iterator[tuple[str, str, dict]]:
    """Yield name, statement and binds of all DDL."""
    parts = {
        "core": schema.core(native_json=True),
        "core of 19c": schema.core(native_json=False),
        "vectors": schema.vectors(None),
        "vectors of one length": schema.vectors(384),
        "hnsw": schema.vector_index("hnsw"),
        "ivf": schema.vector_index("ivf"),
        "text": schema.text_index(),
    }
    yield "migrations", schema.CREATE_MIGRATIONS, {}
    for name, groups in parts.items():
        for group in groups:
            for number, statement in enumerate(group):
                yield f"{name} {number}", statement, {}


def of_migrations() -> Iterator[tuple[str, str, dict]]:
    yield "first version", schema.FIRST_VERSION, {"part": 1}
    yield "lock", schema.LOCK_MIGRATIONS, {"part": 1}
    yield "read", schema.READ_MIGRATIONS, {}
    yield "set", schema.SET_VERSION, {"part": 1, "version": 1, "kind": 0}


def of_items() -> Iterator[tuple[str, str, dict]]:
    """Yield name, statement and binds of the fixed statements of the store."""
    row = item_row()
    state = _State(1, 0, row=row)
    name = {"name": row.address.name}
    update = _binds(row, state, NOW, native_json=True)
    yield "get", queries.GET, name | {"now": 1}
    yield "get vector", queries.GET_VECTOR, name | {"now": 1}
    yield "update", queries.UPDATE, update
    yield "insert", queries.INSERT, _whole(row, state, NOW, native_json=True)
    yield "stems", queries.SET_STEMS, name | {"stems": "x61"}
    yield "delete", queries.DELETE, name
    yield "drop words", queries.DROP_WORDS, name
    yield "add words", queries.ADD_WORDS, row.word_rows()[0]
    yield "drop vector", queries.DROP_VECTOR, name
    yield "add vector", queries.INSERT_VECTOR, row.vector_row()
    yield "expired", queries.EXPIRED, {"now": 1, "most": 1}
    yield "delete expired", queries.DELETE_EXPIRED, name | {"now": 1}
    bounds = {"low": b"a", "high": b"b"}
    yield "clear expired", queries.CLEAR_EXPIRED, bounds | {"now": 1}
    yield "clear", queries.CLEAR, bounds
    yield "namespaces", queries.NAMESPACES, bounds | {"now": 1, "most": 1}
    yield "whole name", queries.WHOLE_NAME, {"scope": b"a"}
    yield "lost vectors", queries.LOST_VECTORS, {}
    for statement, binds in _in_lists(queries.get_many, [b"a", b"b", b"c"]):
        yield "get many", statement, binds | {"now": 1}
    for statement, binds in _in_lists(queries.lock_many, [b"a"]):
        yield "lock many", statement, binds


def of_searches() -> Iterator[tuple[str, str, dict]]:
    """Yield name, statement and binds of the statements that are put together."""
    for native in (True, False):
        for recursive in (True, False):
            yield from _searches(native=native, recursive=recursive)


def _searches(*, native: bool, recursive: bool) -> Iterator[tuple[str, str, dict]]:
    scope = Scope.of(("users", "ada"), NOW, recursive=recursive)
    kind = f"{'json' if native else 'blob'} {'tree' if recursive else 'one'}"

    def begin():
        arguments = Arguments()
        fits = compile_filter(parse_filter(FILTER), arguments, native_json=native)
        return arguments, scope.condition(arguments), scope.live(arguments), fits

    arguments, here, live, fits = begin()
    page = {"offset": arguments.bind_new(0), "most": arguments.bind_new(5)}
    where = f"{here} AND {live} AND ({fits})"
    yield f"newest {kind}", queries.newest(where, **page), arguments.binds
    arguments, here, live, fits = begin()
    page = {"offset": arguments.bind_new(0), "most": arguments.bind_new(5)}
    words = f"{arguments.bind(b'a')}, {arguments.bind(b'b')}"
    statement = queries.ranked(here, live, fits=fits, words=words, **page)
    yield f"ranked {kind}", statement, arguments.binds
    arguments, here, live, fits = begin()
    page = {"offset": arguments.bind_new(0), "most": arguments.bind_new(5)}
    statement = queries.ranked_by_oracle_text(
        f"{here} AND {live} AND ({fits})", query=arguments.bind("x61 OR x62"), **page
    )
    yield f"oracle text {kind}", statement, arguments.binds
    for approximate in (True, False):
        arguments, here, live, fits = begin()
        statement = queries.nearest(
            f"{here} AND {live} AND ({fits})",
            dimension=arguments.bind(3),
            query=arguments.bind_new([1.0]),
            offset="" if approximate else arguments.bind_new(0),
            most="100" if approximate else arguments.bind_new(5),
            approximate=approximate,
        )
        yield f"nearest {kind} {approximate}", statement, arguments.binds
    arguments, here, live, _ = begin_without_filter(scope)
    statement = queries.other_dimension(f"{here} AND {live}", arguments.bind(3))
    yield f"other dimension {kind}", statement, arguments.binds
    for descending in (True, False):
        arguments, here, live, _ = begin_without_filter(scope)
        keys = key_condition(KeyRange("a", "b", descending), "path", arguments)
        where = f"{here} AND {live} AND {keys}"
        most = arguments.bind_new(5)
        statement = queries.scan(where, most, columns=queries.COLUMNS, descending=descending)
        yield f"scan {kind} {descending}", statement, arguments.binds
    arguments, here, _, _ = begin_without_filter(scope)
    yield (
        f"names {kind}",
        queries.all_names(here),
        {name: arguments.binds[name] for name in list(arguments.binds)[:2]},
    )


def begin_without_filter(scope):
    arguments = Arguments()
    return arguments, scope.condition(arguments), scope.live(arguments), ""


def of_checkpoints() -> Iterator[tuple[str, str, dict]]:
    """Yield name, statement and binds of the statements of checkpoints."""
    thread = {"thread": b"t" * 16}
    own = {"digest": b"t" * 16}
    page = {"before": 9, "most": 5}
    row = record()
    yield "claim", records.CLAIM, _claim("t", may_begin=True)
    yield "advance", records.ADVANCE, _advance(row, UNSET)
    yield "append", records.APPEND, thread | to_row(row)
    yield "overwrite", records.OVERWRITE, thread | to_rewrite(row)
    found = thread | {"revision": 1}
    yield "sequence", records.SEQUENCE, found
    yield "remove", records.REMOVE, found
    yield "lock", records.LOCK, thread
    yield "remove all", records.REMOVE_ALL, thread
    named = thread | {"name": b"c"}
    yield "remove named", records.REMOVE_NAMED, named
    yield "newest", records.NEWEST, thread
    yield "renew", records.RENEW, own | {"newest": b"c"}
    long_name = {"long_name": thread_row("t" * 2_000)["long_name"]}
    yield "long name", records.SET_LONG_NAME, own | long_name
    yield "remove thread", records.REMOVE_THREAD, own
    yield "find newest", records.FIND_NEWEST, thread
    yield "find named", records.FIND_NAMED, named
    yield "list", records.LIST, thread | page
    bounds = {"after": 0, "through": 9, "most": 5}
    yield "records", records.RECORDS, thread | bounds
    yield "sequences", records.SEQUENCES, thread
    yield "chain of newest", records.CHAIN_OF_NEWEST, thread
    yield "chain of named", records.CHAIN_OF_NAMED, named
    yield "threads", records.THREADS, {"low": b"a", "high": b"b", "most": 5}
    yield "heads of all", records.HEADS_OF_ALL, page


def statements():
    """Return name, statement with the names of its tables, and binds, of every statement."""
    parts = (of_the_schema, of_migrations, of_items, of_searches, of_checkpoints)
    return [(name, NAMES.fill(text), binds) for part in parts for name, text, binds in part()]
