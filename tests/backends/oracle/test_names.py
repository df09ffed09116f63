"""Names in code point order, tokens that find every match, and rows that come back exactly."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from locus_memory.backends.oracle.items.naming import LONGEST, Address, cut, is_cut, split
from locus_memory.backends.oracle.items.rows import ItemRow, item_of, micros, word_name
from locus_memory.backends.oracle.items.tokens import ANY, tokens_of
from locus_memory.backends.oracle.schema import NEVER
from locus_memory.errors import BackendCorruptError
from locus_memory.store.item import Put


@pytest.mark.parametrize("character", ["a", "\0", "\x01", "\U0001f98a", "\xff"])
def test_a_name_of_any_length_fits_its_column(character):
    for length in (1, 474, 475, 950, 1_000, 5_000):
        address = Address.of((character * length,), "k" + character * length)
        assert len(address.name) <= 2_000
        assert len(address.scope) <= 2_000
        assert (address.long_name is None) == (len(address.whole) <= LONGEST)
        assert split(address.whole) == (address.path, address.key)


def test_a_cut_name_is_that_of_one_name():
    one, other = cut(b"a" * 3_000), cut(b"a" * 3_001)
    assert one != other
    assert is_cut(one)
    assert not is_cut(cut(b"a" * LONGEST))
    assert len(word_name("\U0001f98a" * 100)) == 64


def test_an_item_with_many_fields_is_one_token():
    assert tokens_of({str(n): n for n in range(10_000)}, {}) == [ANY]


def row_of(value, metadata=None, **changed):
    address = Address.of(("a",), "k")
    put = Put(namespace=("a",), key="k", value=value, metadata=metadata)
    row = ItemRow.of(address, put, None)
    fields = {"checksum": row.checksum, "document": row.document} | changed
    return (address.name, None, 1, 10, 20, NEVER, fields["checksum"], fields["document"])


@pytest.mark.parametrize("document", [b"", b"[1,{}]", b"[2", b"null", None])
def test_damage_is_an_error_that_names_the_item(document):
    with pytest.raises(BackendCorruptError, match="'k'"):
        item_of(row_of(2, document=document))


def test_moments_are_exact():
    moment = datetime(2026, 11, 23, 1, 2, 3, 456789, UTC)
    assert micros(moment) == 1_795_395_723_456_789
