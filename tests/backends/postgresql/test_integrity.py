"""An item of PostgreSQL that is damaged is an error, and never another item."""

from __future__ import annotations

import traceback

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from locus_memory.backends.postgresql.store import PostgreSQLStore
from locus_memory.errors import BackendCorruptError, BackendError

HERE = ("users", "ada/b")
SECRET = "the secret of Ada"


@pytest.fixture
async def store(pool):
    return PostgreSQLStore(pool=pool)


@pytest.mark.parametrize(
    "damage",
    [
        """value = '{"text": "other"}'""",
        "value = jsonb_set(value, ARRAY['n'], '2')",
        "value = jsonb_set(value, ARRAY['n'], '1.0')",
        "value = 'null'",
        """value = '"\\u0001"'""",
        "key = 'other'",
        "path = 'users' || chr(1)",
        "key = chr(2) || chr(9)",
        "checksum = checksum + 2",
        "checksum = checksum - 4294967296",
    ],
)
async def test_a_damaged_row_is_named_and_not_quoted(pool, store, damage):
    await store.put(HERE, "k", {"n": 1, "text": SECRET}, {"step": 1})
    await store.put(("other",), "k", 2)
    await pool.execute(f"UPDATE {{items}} SET {damage} WHERE value @> '{{\"n\": 1}}'")
    reads = {
        "get_item": store.get_item(HERE, "k"),
        "scan": store.scan(HERE),
        "search": store.search(HERE),
        "words": store.search(HERE, "secret"),
    }
    by_value = {"get": store.get(HERE, "k"), "get_batch": store.get_batch([(HERE, "k")])}
    if damage.startswith(("key", "path", "checksum = checksum + 2")):
        # The value and the name that was asked for are what they were.
        for read in by_value.values():
            await read
    else:
        reads |= by_value
    for read in reads.values():
        with pytest.raises(BackendCorruptError, match="the item") as caught:
            await read
        assert SECRET not in str(caught.value)
    assert await store.get(("other",), "k") == 2
    await store.put(HERE, "k", "whole again")
    assert await store.get(HERE, "k") == "whole again"


@pytest.mark.parametrize("damage", ["""'{"step": 2}'""", "'{}'", "'[]'"])
async def test_damaged_metadata_are_named(pool, store, damage):
    await store.put(HERE, "k", {"n": 1}, {"step": 1})
    await pool.execute(f"UPDATE {{items}} SET metadata = {damage}")
    for read in (store.get_item(HERE, "k"), store.scan(HERE), store.search(HERE)):
        with pytest.raises(
            BackendCorruptError, match=r"the item 'k' of \('users', 'ada/b'\) is damaged"
        ):
            await read
    assert await store.get(HERE, "k") == {"n": 1}


async def test_values_that_changed_places_are_noticed(pool, store):
    await store.put_batch([(HERE, "one", 1), (HERE, "two", 2)])
    await pool.execute("UPDATE {items} SET key = CASE key WHEN 'one' THEN 'two' ELSE 'one' END")
    for key in ("one", "two"):
        with pytest.raises(BackendCorruptError):
            await store.get_item(HERE, key)
    await store.put_batch([(HERE, "one", 1), (HERE, "two", 2)])
    await pool.execute(
        "UPDATE {items} AS i SET (value, checksum) ="
        " (SELECT o.value, o.checksum FROM {items} AS o WHERE o.name <> i.name)"
    )
    for key in ("one", "two"):
        with pytest.raises(BackendCorruptError, match=key):
            await store.get(HERE, key)


@pytest.mark.parametrize(
    "damage",
    ["embedding = '[1,0]'", "checksum = checksum + 1", "checksum = NULL"],
)
async def test_a_damaged_vector_is_noticed(pool, store, damage):
    await store.put_with_embedding(HERE, "k", 1, [3.0, 4.0])
    assert await store.get_embedding(HERE, "k") == pytest.approx([0.6, 0.8])
    await pool.execute(f"UPDATE {{vectors}} SET {damage}")
    with pytest.raises(BackendCorruptError, match="the vector of the item 'k'"):
        await store.get_embedding(HERE, "k")
    assert await store.get(HERE, "k") == 1


async def test_every_way_to_write_brings_its_checksums(pool, store):
    vector = [0.25, -0.5, 1 / 3]
    await store.put(HERE, "0", 1.0, {"a": -0.0})
    await store.put_with_embedding(HERE, "1", {"b": 1, "a": "\x00\x01\x02"}, vector)
    await store.put_batch([(HERE, "2", [1e22, 2**64 - 1]), (HERE, "3", None, {"z": 1, "a": 2})])
    await store.put_batch([(HERE, "0", "over"), (HERE, "1", "over a vector")])
    await store.put(HERE, "0", "conditional", if_version=2)
    await store.put_with_embedding(HERE, "4", {"n": 1}, vector, if_version=0)
    await store.put_with_embedding(HERE, "4", {"n": 2}, vector, {"m": 1}, if_version=1)
    assert [item.value for item in await store.scan(HERE)] == [
        "conditional",
        "over a vector",
        [1e22, 2**64 - 1],
        None,
        {"n": 2},
    ]
    assert await store.get_embedding(HERE, "1") is None
    assert len(await store.get_embedding(HERE, "4")) == 3
    assert await pool.fetchval("SELECT count(*) FROM {items} WHERE checksum = 0") == 0
    assert await pool.fetchval("SELECT count(*) FROM {vectors} WHERE checksum IS NULL") == 0


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.text(max_size=5)
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=9,
)


@pytest.mark.slow
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(value=JSON, metadata=st.dictionaries(st.text(max_size=3), JSON, max_size=3))
async def test_whatever_jsonb_makes_of_a_document_its_checksum_holds(store, value, metadata):
    await store.put(HERE, "k", value, metadata)
    await store.put_batch([(HERE, "b", value, metadata), (HERE, "c", metadata, None)])
    item = await store.get_item(HERE, "k")
    assert (item.value, item.metadata) == (value, metadata)
    assert await store.get(HERE, "b") == value
    assert len(await store.scan(HERE)) == 3


async def test_a_row_of_before_is_taken_as_it_is(pool, store):
    await store.put_with_embedding(HERE, "k", {"n": 1}, [3.0, 4.0])
    await pool.execute("UPDATE {items} SET checksum = 0, value = '2'")
    await pool.execute("UPDATE {vectors} SET checksum = NULL")
    assert await store.get(HERE, "k") == 2
    assert (await store.get_item(HERE, "k")).value == 2
    assert await store.get_embedding(HERE, "k") == pytest.approx([0.6, 0.8])


async def test_a_statement_of_before_writes_nothing(pool, store):
    """It would leave the checksum of the value before."""
    await store.put(HERE, "k", 1)
    columns = (
        "name, scope, version, revision, created_at, updated_at, length, path, key,"
        " metadata, value, words"
    )
    with pytest.raises(Exception, match="checksum"):
        await pool.execute(
            f"INSERT INTO {{items}} AS i ({columns}) SELECT {columns} FROM {{items}}"
            " ON CONFLICT (name) DO UPDATE SET value = '2'"
        )
    assert await store.get(HERE, "k") == 1


@pytest.mark.usefixtures("own_tables")
@pytest.mark.parametrize(
    ("change", "part"),
    [
        ("DROP TABLE {migrations}", "core"),
        ("DELETE FROM {migrations}", "core"),
        ("DELETE FROM {migrations} WHERE part = 'core'", "core"),
        ("DELETE FROM {migrations} WHERE part = 'vector'", "vector"),
    ],
)
async def test_tables_that_nothing_says_the_version_of(pool, make_pool, store, change, part):
    await store.put_with_embedding(HERE, "k", 1, [3.0, 4.0])
    await pool.execute(change)
    later = PostgreSQLStore(pool=make_pool())
    with pytest.raises(BackendCorruptError, match=f"restore its row '{part}'"):
        await later.get(HERE, "k")
    assert await pool.fetchval("SELECT count(*) FROM {items}") == 1
    assert await pool.fetchval("SELECT count(*) FROM {vectors}") == 1


@pytest.mark.usefixtures("own_tables")
async def test_a_table_that_is_gone(pool, store):
    await store.put(HERE, "k", 1)
    await pool.execute("DROP TABLE {items} CASCADE")
    with pytest.raises(BackendCorruptError):
        await store.get(HERE, "k")


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT 'SECRET'::integer",
        "SELECT '{\"SECRET'::jsonb",
        "SELECT 'SECRET'::timestamptz",
        "SELECT 'SECRET'::{vector}.vector",
        "INSERT INTO {items} SELECT * FROM {items}",
        "UPDATE {items} SET checksum = NULL WHERE value = '\"SECRET\"'",
    ],
)
async def test_no_error_of_the_server_quotes_a_value(pool, store, statement):
    await store.put(HERE, "k", "SECRET")
    with pytest.raises(BackendError) as caught:
        await pool.execute(statement)
    assert "SECRET" not in str(caught.value)
    if "::" in statement:
        assert "SECRET" not in "".join(traceback.format_exception(caught.value)).replace(
            statement, ""
        )
