"""The statements of a write, in the order in which they are sent."""

from __future__ import annotations

from datetime import UTC, datetime

from locus_memory.backends.oracle.connection.connection import arrays
from locus_memory.backends.oracle.items.items import _puts, _State
from locus_memory.backends.oracle.items.naming import Address
from locus_memory.backends.oracle.items.rows import ItemRow
from locus_memory.store.item import Put

NOW = datetime(2026, 11, 23, tzinfo=UTC)
LARGE = b"a" * 40_000


def written(key, *, is_stored):
    row = ItemRow.of(Address.of(("a",), key), Put(namespace=("a",), key=key, value=1), None)
    return row, _State(1, 0, is_stored=is_stored, row=row)


def test_items_are_written_in_the_order_of_their_puts():
    """Each row takes the next number of a sequence, by which the newest write is found."""
    puts = [written(key, is_stored=key in "bcf") for key in "abcdef"]
    writes = _puts(puts, NOW, native_json=True)
    assert [write.template.split()[0] for write in writes] == ["INSERT", "UPDATE"] * 2
    names = [row["name"] for write in writes for row in write.rows]
    assert names == [row.address.name for row, _ in puts]


def test_arrays_keep_the_order_of_rows():
    rows = [{"n": n, "document": LARGE if n in {3, 4, 9} else b"a"} for n in range(1_200)]
    found = arrays(rows)
    assert [row for each in found for row in each] == rows
    assert [len(each) for each in found] == [3, 1, 1, 4, 1, 500, 500, 190]
    assert arrays([]) == []
