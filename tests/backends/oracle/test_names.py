"""Names in code point order, tokens that find every match, and rows that come back exactly."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from locus_memory.backends.oracle.items.naming import LONGEST, Address, cut, is_cut, split
from locus_memory.backends.oracle.items.queries import Arguments
from locus_memory.backends.oracle.items.rows import ItemRow, item_of, micros, word_name
from locus_memory.backends.oracle.items.tokens import ANY, tokens_of
from locus_memory.backends.oracle.schema import NEVER
from locus_memory.backends.oracle.search.filters import compile_filter
from locus_memory.errors import BackendCorruptError
from locus_memory.store.filters import matches, parse_filter

TEXTS = st.text(st.characters(codec="utf-8"), min_size=1, max_size=6)
SCALARS = st.none() | st.booleans() | st.integers(-5, 5) | st.floats(-5, 5) | st.sampled_from("ab")
DOCUMENTS = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["a", "b", "0", "01"]), inner, max_size=3)
    ),
    max_leaves=6,
)
PATHS = st.lists(st.sampled_from(["a", "b", "0", "01", "1"]), min_size=1, max_size=3).map(".".join)
FILTERS = st.recursive(
    st.dictionaries(
        PATHS,
        SCALARS
        | st.fixed_dictionaries({"$in": st.lists(SCALARS, max_size=3)})
        | st.fixed_dictionaries({"$gt": st.integers(-5, 5)})
        | st.fixed_dictionaries({"$ne": SCALARS})
        | st.fixed_dictionaries({"$contains": SCALARS}),
        max_size=2,
    ),
    lambda inner: (
        st.fixed_dictionaries({"$or": st.lists(inner, min_size=1, max_size=3)})
        | st.fixed_dictionaries({"$not": inner})
    ),
    max_leaves=3,
)


@pytest.mark.slow
@settings(deadline=None)
@given(st.lists(st.tuples(st.lists(TEXTS, min_size=1, max_size=3).map(tuple), TEXTS)))
def test_names_are_in_the_order_of_namespaces_and_keys(places):
    names = {place: Address.of(*place).name for place in places}
    assert sorted(names.values()) == [names[place] for place in sorted(names)]
    assert len(set(names.values())) == len(names)


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


def holds(sql, tokens, binds):
    """Evaluate a compiled filter over the tokens of an item."""
    expression = sql.replace(" AND ", " and ").replace(" OR ", " or ").replace("1 = 1", "True")
    for name, token in binds.items():
        literal = f"""JSON_EXISTS(i."FIELDS", '$[*]?(@ == $t)' PASSING :{name} AS "t")"""
        expression = expression.replace(literal, str(token in tokens))
    return eval(expression)


@pytest.mark.slow
@settings(deadline=None)
@given(DOCUMENTS, st.dictionaries(st.sampled_from(["a", "b"]), SCALARS, max_size=2), FILTERS)
def test_every_match_has_the_tokens_of_the_filter(value, metadata, given_filter):
    condition = parse_filter(given_filter)
    arguments = Arguments()
    sql = compile_filter(condition, arguments, native_json=True)
    if matches(condition, value, metadata):
        assert holds(sql, tokens_of(value, metadata), arguments.binds)


def test_an_item_with_many_fields_is_one_token():
    assert tokens_of({str(n): n for n in range(10_000)}, {}) == [ANY]


def row_of(value, metadata=None, **changed):
    address = Address.of(("a",), "k")
    row = ItemRow.of(address, value, metadata, ttl=None, text=None, vector=None)
    fields = {"checksum": row.checksum, "document": row.document} | changed
    return (address.name, None, 1, 10, 20, NEVER, fields["checksum"], fields["document"])


@pytest.mark.slow
@settings(deadline=None)
@given(DOCUMENTS)
def test_a_value_comes_back_as_it_was(value):
    item = item_of(row_of(value, {"m": 1.0}))
    assert repr(item.value) == repr(value)
    assert item.metadata == {"m": 1.0}
    assert item.expires_at is None
    assert item.created_at == datetime(1970, 1, 1, 0, 0, 0, 10, UTC)


@pytest.mark.parametrize("document", [b"", b"[1,{}]", b"[2", b"null", None])
def test_damage_is_an_error_that_names_the_item(document):
    with pytest.raises(BackendCorruptError, match="'k'"):
        item_of(row_of(2, document=document))


def test_moments_are_exact():
    moment = datetime(2026, 11, 23, 1, 2, 3, 456789, UTC)
    assert micros(moment) == 1_795_395_723_456_789
