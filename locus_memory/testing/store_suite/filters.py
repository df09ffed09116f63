"""The store suite: filters in `search`, compared with a plain evaluation in Python."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from locus_memory.errors import InvalidFilterError
from locus_memory.store.base import BaseStore
from locus_memory.store.filters import MOST_LEVELS, MOST_TERMS, matches, parse_filter
from locus_memory.store.item import Put
from locus_memory.testing.store_suite.base import (
    PROPERTY,
    StoreSuite,
    axis,
    goes_by_writes,
    refused,
)

__all__ = ["FilterTests", "filtered_items", "filters"]

NS = ("people",)

PEOPLE: Final[dict[str, tuple[Any, dict[str, Any]]]] = {
    "ada": ({"name": "Ada", "age": 36, "tags": ["math", "poet"]}, {"active": True, "rank": 1}),
    "bob": ({"name": "Bob", "age": 36.0, "tags": []}, {"active": 1, "rank": "1"}),
    "cyd": ({"name": "Cyd", "address": {"city": "Rome", "zip": None}}, {"active": False}),
    "dee": ("a plain string", {"rank": 1.5, "name": "Dee"}),
    "eve": ([{"name": "first"}, {"name": "second"}], {"rank": None}),
}

CASES: Final[list[tuple[dict[str, Any], str]]] = [
    ({}, "ada bob cyd dee eve"),
    ({"name": "Ada"}, "ada"),
    ({"name": {"$eq": "Dee"}}, "dee"),
    # The metadata is read first, and the value if the metadata has no such field.
    ({"name": {"$exists": True}}, "ada bob cyd dee"),
    ({"age": 36}, "ada bob"),
    ({"rank": 1}, "ada"),
    ({"rank": 1.0}, "ada"),
    ({"rank": "1"}, "bob"),
    ({"rank": None}, "eve"),
    ({"active": True}, "ada"),
    ({"active": 1}, "bob"),
    ({"active": False}, "cyd"),
    ({"active": 0}, ""),
    ({"rank": True}, ""),
    ({"rank": {"$ne": 1}}, "bob cyd dee eve"),
    ({"rank": {"$gt": 1}}, "dee"),
    ({"rank": {"$gte": 1}}, "ada dee"),
    ({"rank": {"$lt": 1.5}}, "ada"),
    ({"rank": {"$lte": 1.5}}, "ada dee"),
    ({"rank": {"$gt": 0, "$lt": 1.2}}, "ada"),
    ({"rank": {"$gte": "0"}}, "bob"),
    ({"active": {"$gte": 0}}, "bob"),
    ({"missing": {"$gt": 1}}, ""),
    ({"missing": {"$lte": 1}}, ""),
    ({"name": {"$gt": "B", "$lt": "D"}}, "bob cyd"),
    ({"rank": {"$in": [1, "1"]}}, "ada bob"),
    ({"rank": {"$in": [True, None]}}, "eve"),
    ({"rank": {"$in": []}}, ""),
    ({"rank": {"$nin": [1, "1"]}}, "cyd dee eve"),
    ({"rank": {"$nin": []}}, "ada bob cyd dee eve"),
    ({"rank": {"$exists": False}}, "cyd"),
    ({"rank": {"$exists": True}}, "ada bob dee eve"),
    ({"missing": None}, ""),
    ({"missing": {"$ne": 1}}, "ada bob cyd dee eve"),
    ({"missing": {"$nin": [1]}}, "ada bob cyd dee eve"),
    ({"missing": {"$contains": "a"}}, ""),
    ({"tags": {"$contains": "poet"}}, "ada"),
    ({"tags": {"$contains": "poe"}}, ""),
    ({"name": {"$contains": "d"}}, "ada cyd"),
    ({"name": {"$contains": "D"}}, "dee"),
    ({"rank": {"$contains": "1"}}, "bob"),
    ({"tags": ["math", "poet"]}, "ada"),
    ({"tags": ["poet", "math"]}, ""),
    ({"tags": []}, "bob"),
    ({"tags.1": "poet"}, "ada"),
    ({"tags.7": {"$exists": False}}, "ada bob cyd dee eve"),
    ({"address": {"city": "Rome", "zip": None}}, "cyd"),
    ({"address": {"zip": None, "city": "Rome"}}, "cyd"),
    ({"address": {"city": "Rome"}}, ""),
    ({"address.city": "Rome"}, "cyd"),
    ({"address.zip": None}, "cyd"),
    ({"address.zip": {"$exists": True}}, "cyd"),
    ({"address.city.street": {"$exists": True}}, ""),
    ({"1.name": "second"}, "eve"),
    ({"age": 36, "name": "Bob"}, "bob"),
    ({"$and": [{"age": 36}, {"rank": 1}]}, "ada"),
    ({"$or": [{"rank": 1}, {"name": "Dee"}]}, "ada dee"),
    ({"$or": [{"missing": 1}, {"age": {"$gt": 30}}]}, "ada bob"),
    ({"$not": {"age": 36}}, "cyd dee eve"),
    ({"$not": {"missing": {"$gt": 1}}}, "ada bob cyd dee eve"),
    ({"rank": {"$not": {"$gt": 1}}}, "ada bob cyd eve"),
    ({"$or": [{"$and": [{"age": 36}, {"$not": {"rank": 1}}]}, {"rank": None}]}, "bob eve"),
]

BAD: Final[list[Any]] = [
    {"rank": {"$foo": 1}},
    {"rank": {"$regex": ".*"}},
    {"rank": {"$gt": 1, "other": 2}},
    {"$nor": [{"a": 1}]},
    {"$where": "1"},
    {"$and": []},
    {"$or": {"a": 1}},
    {"$and": [1]},
    {"$or": [None]},
    {"$not": [1]},
    {"$not": None},
    {"rank": {"$not": 1}},
    {"rank": {"$in": "abc"}},
    {"rank": {"$nin": 1}},
    {"rank": {"$gt": None}},
    {"rank": {"$gt": True}},
    {"rank": {"$lt": [1]}},
    {"rank": {"$lte": float("nan")}},
    {"rank": {"$exists": 1}},
    {"rank": {1, 2}},
    {"rank": {"$eq": ...}},
    {"": 1},
    {1: 1},
    {"rank": {"gt": 1}},
    {"rank": {"gte": 1, "lt": 2}},
    {"rank": {"in": [1]}},
    {"or": [{"rank": 1}, {"name": "Ada"}]},
    {"and": [{"rank": 1}]},
    {"not": {"rank": 1}},
    "rank = 1",
    [("rank", 1)],
]

INJECTIONS: Final = [
    "'; DROP TABLE items; --",
    "' OR '1'='1",
    '" OR "1"="1',
    '$."x',
    'a"b',
    'a"]',
    "a'b",
    "back\\slash",
    'back\\"slash',
    "x') OR 1=1 --",
    "$[0]",
    "[0]",
    "#-1",
    "*",
    "a\x00b",
    "%",
    "{x}",
    "@field:[1 2]",
    "é🦊",
    " ",
]

_NUMBERS: Final = [0, 1, 1.0, -0.0, -1, 1.5, 2**53 + 1, float(2**53), 2**63 - 1, -(2**63), 1e300]
_TEXTS: Final = ["", "1", "a", "b", "ab", "é", "\ue000", "🦊", "a\x00b", 'a"b', "null", "true"]
_scalar = st.sampled_from([None, True, False, *_NUMBERS, *_TEXTS])
_name = st.sampled_from(["a", "b", "0", "1", 'a"b', "it's", "é", "back\\slash", " "])
_value = _scalar | st.lists(_scalar, max_size=3) | st.dictionaries(_name, _scalar, max_size=2)
_path = st.lists(_name, min_size=1, max_size=2).map(".".join)
_ordered = st.sampled_from([*_NUMBERS, *_TEXTS])
_operators = st.one_of(
    st.tuples(st.sampled_from(["$eq", "$ne", "$contains"]), _value),
    st.tuples(st.sampled_from(["$gt", "$gte", "$lt", "$lte"]), _ordered),
    st.tuples(st.sampled_from(["$in", "$nin"]), st.lists(_value, max_size=3)),
    st.tuples(st.just("$exists"), st.booleans()),
)
_conditions = st.lists(_operators, min_size=1, max_size=2).map(dict)
_leaf = st.dictionaries(
    _path, _value | _conditions | _conditions.map(lambda c: {"$not": c}), max_size=2
)

filters: Final[st.SearchStrategy[dict[str, Any]]] = st.recursive(
    _leaf,
    lambda inner: (
        st.lists(inner, min_size=1, max_size=3).map(lambda parts: {"$and": parts})
        | st.lists(inner, min_size=1, max_size=3).map(lambda parts: {"$or": parts})
        | inner.map(lambda part: {"$not": part})
    ),
    max_leaves=3,
)
"""Valid filters over few names and values, so that they often match."""

filtered_items: Final[st.SearchStrategy[list[tuple[Any, dict[str, Any]]]]] = st.lists(
    st.tuples(
        st.dictionaries(_name, _value, max_size=3) | _value,
        st.dictionaries(_name, _value, max_size=2),
    ),
    max_size=6,
)
"""Values with their metadata, over the same names and values."""


async def found(store: BaseStore, filter: Mapping[str, Any]) -> str:  # noqa: A002 - the contract's
    """Return the keys of the people that match a filter, in order."""
    return " ".join(sorted(item.key for item in await store.search(NS, filter=filter)))


def _nested(name: str, levels: int) -> dict[str, Any]:
    """Return a filter with this many levels of one kind."""
    document: dict[str, Any] = {"rank": 1}
    if name == "operand":
        operand: Any = document
        for _ in range(levels - 2):
            operand = [operand]
        return {"rank": operand}
    if name == "$and":
        # Each is an object and a list.
        for _ in range((levels - 1) // 2):
            document = {"$and": [document]}
        return document if levels % 2 else {"$not": document}
    for _ in range(levels - 1):
        document = {name: document}
    return document


class FilterTests(StoreSuite):
    """Every operator, strict types, and text that is never executed."""

    async def test_every_operator(self, store: BaseStore) -> None:
        await store.put_batch(
            [(NS, key, value, metadata) for key, (value, metadata) in PEOPLE.items()]
        )
        results = [(filter, await found(store, filter)) for filter, _ in CASES]  # noqa: A001 - as above
        assert results == CASES

    @pytest.mark.parametrize("bad", BAD, ids=repr)
    async def test_a_bad_filter_is_refused(self, store: BaseStore, bad: Any) -> None:
        await store.put(NS, "k", {"rank": 1})
        await refused(
            InvalidFilterError,
            store.search(NS, filter=bad),
            store.search(("empty",), filter=bad),
        )
        if store.capabilities.semantic_search:
            call = store.search_by_embedding(NS, axis(store, 0), metadata_filter=bad)
            await refused(InvalidFilterError, call)

    async def test_a_field_with_an_operators_name_can_be_meant(self, store: BaseStore) -> None:
        await store.put(NS, "k", {"rank": {"gt": 1}, "or": [{"a": 1}], "not": {"in": [2]}})
        await store.put(NS, "other", {"rank": {"gt": 2}})
        for meant in (
            {"rank.gt": 1},
            {"rank": {"$eq": {"gt": 1}}},
            {"or": {"$eq": [{"a": 1}]}},
            {"not": {"$eq": {"in": [2]}}},
        ):
            assert await found(store, meant) == "k"

    @pytest.mark.parametrize("name", ["$not", "$and", "operand"])
    async def test_a_filter_has_so_many_levels_and_no_more(
        self, store: BaseStore, name: str
    ) -> None:
        await store.put(NS, "k", {"rank": 1})
        for levels in (2, MOST_LEVELS - 1, MOST_LEVELS):
            assert await found(store, _nested(name, levels)) in ("", "k")
        for levels in (MOST_LEVELS + 1, 244, 254, 300, 327, 100_000):
            await refused(InvalidFilterError, store.search(NS, filter=_nested(name, levels)))

    async def test_a_filter_has_so_many_terms_and_no_more(self, store: BaseStore) -> None:
        await store.put(NS, "k", {"rank": 1})
        half = [{"rank": n} for n in range(MOST_TERMS // 2)]
        many: list[dict[str, Any]] = [
            {"rank": {"$in": list(range(MOST_TERMS - 2))}},
            {"$or": half[:-1]},
            {"rank": 1, **{f"f{n}": {"$exists": False} for n in range(MOST_TERMS // 2 - 1)}},
        ]
        for document in many:
            assert await found(store, document) == "k"
        larger: list[dict[str, Any]] = [
            {"rank": {"$in": list(range(MOST_TERMS))}},
            {"$or": half},
            {f"f{n}": n for n in range(10 * MOST_TERMS)},
            {".".join(["a"] * (MOST_TERMS + 1)): 1},
        ]
        for document in larger:
            await refused(InvalidFilterError, store.search(NS, filter=document))

    async def test_an_error_quotes_the_beginning_of_an_operand(self, store: BaseStore) -> None:
        large = "x" * 10_000_000
        documents: list[dict[str, Any]] = [
            {"rank": {"$in": large}},
            {"rank": {"$" + large: 1}},
            {large: {"in": []}},
        ]
        for document in documents:
            [error] = await refused(
                InvalidFilterError,
                store.search(NS, filter=document),
            )
            assert len(str(error)) < 2000

    async def test_filter_text_is_never_code(self, store: BaseStore) -> None:
        names = [name for name in INJECTIONS if "." not in name]
        for name in names:
            await store.put(NS, name, {name: name}, {"meta" + name: name})
        for name in names:
            for document in (
                {name: name},
                {"meta" + name: {"$eq": name}},
                {name: {"$in": [name]}},
                {name: {"$contains": name}},
                {name: {"$gte": name, "$lte": name}},
                {"$and": [{name: {"$exists": True}}, {"meta" + name: {"$ne": "x"}}]},
            ):
                if not name.startswith("$"):
                    assert await found(store, document) == name
            assert await found(store, {"missing": name}) == ""
        assert len(await store.list_keys(NS)) == len(names)

    async def test_an_injected_path_matches_nothing(self, store: BaseStore) -> None:
        await store.put(NS, "k", {"a": 1}, {"b": 2})
        for name in INJECTIONS:
            if not name.startswith("$"):
                assert await found(store, {name: 1}) == ""
                assert await found(store, {"a." + name: {"$exists": True}}) == ""
                assert await found(store, {name: {"$exists": False}}) == "k"

    @PROPERTY
    @given(items=filtered_items, documents=st.lists(filters, min_size=1, max_size=6))
    @example(items=[({"a": 2**53 + 1}, {})], documents=[{"a": float(2**53)}, {"a": 2**53 + 1}])
    @example(items=[({"a": [1]}, {"a": None})], documents=[{"a": None}, {"a": [True]}])
    async def test_any_filter_agrees_with_plain_evaluation(
        self,
        store: BaseStore,
        items: list[tuple[Any, dict[str, Any]]],
        documents: list[dict[str, Any]],
    ) -> None:
        namespace = self.fresh()
        await store.put_batch(
            [
                Put(namespace=namespace, key=str(index), value=value, metadata=metadata)
                for index, (value, metadata) in enumerate(items)
            ]
        )
        for document in documents:
            condition = parse_filter(document)
            wanted = [
                str(index)
                for index, (value, metadata) in enumerate(items)
                if matches(condition, value, metadata)
            ]
            result = await store.search(namespace, filter=document)
            assert sorted(item.key for item in result) == wanted, document

    async def test_filtered_pages_lose_nothing(self, store: BaseStore) -> None:
        await store.put_batch([(NS, f"{n:03}", n, {"odd": n % 2 == 1}) for n in range(200)])
        seen = [
            item.key
            for offset in range(0, 120, 15)
            for item in await store.search(NS, limit=15, offset=offset, filter={"odd": True})
        ]
        assert seen == [
            f"{n:03}" for n in (range(199, 0, -2) if goes_by_writes(store) else range(1, 200, 2))
        ]
