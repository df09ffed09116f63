"""LangGraph's store over ours, beside LangGraph's own in memory."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langgraph.store.base import GetOp, ListNamespacesOp, MatchCondition, PutOp, SearchOp
from langgraph.store.memory import InMemoryStore, _compare_values

from locus_memory.integrations.langgraph.items.filter_translation import compile_filter
from locus_memory.integrations.langgraph.store import LocusStore
from locus_memory.store.filters import matches, parse_filter
from locus_memory.store.hidden_namespaces import FURTHER_VECTORS
from locus_memory.sync import blocking

labels = st.sampled_from(["a", "A", "ab", "*", "b c", "é"])
namespaces = st.lists(labels, min_size=1, max_size=3).map(tuple)
keys = st.sampled_from(["k", "l", "0", "ключ"])
numbers = st.integers(-2, 2)
values = st.fixed_dictionaries(
    {"n": numbers},
    optional={
        "s": st.sampled_from(["x", "y", ""]),
        "d": st.dictionaries(st.sampled_from(["m", "e"]), numbers, max_size=2),
        "l": st.lists(numbers, max_size=2),
    },
)
operators = st.one_of(
    st.fixed_dictionaries({"$eq": numbers}),
    st.fixed_dictionaries({"$ne": numbers}),
    st.fixed_dictionaries({"$gte": numbers, "$lt": numbers}),
    st.fixed_dictionaries({"$gt": numbers}),
    st.fixed_dictionaries({"$lte": numbers}),
)
filters = st.fixed_dictionaries(
    {},
    optional={
        "n": numbers | operators,
        "s": st.sampled_from(["x", "y", "z"]),
        "d": st.dictionaries(
            st.sampled_from(["m", "e"]),
            numbers | st.fixed_dictionaries({"$ne": numbers}),
            max_size=2,
        ),
        "l": st.lists(numbers, max_size=2),
    },
)
conditions = st.builds(
    MatchCondition, st.sampled_from(["prefix", "suffix"]), st.lists(labels, max_size=2).map(tuple)
)
puts = st.tuples(namespaces, keys, values | st.none()).map(lambda fields: PutOp(*fields))
reads = st.one_of(
    st.tuples(namespaces, keys).map(lambda fields: GetOp(*fields)),
    st.builds(
        lambda *fields: SearchOp(*fields, limit=1000),
        st.lists(labels, max_size=2).map(tuple),
        filters,
    ),
    st.tuples(
        st.lists(conditions, max_size=3).map(tuple),
        st.none() | st.integers(0, 3),
        st.integers(0, 5),
        st.integers(0, 3),
    ).map(lambda fields: ListNamespacesOp(*fields)),
)


def expected_of(model, ops):
    """What LangGraph's store returns, but for the namespaces that it makes up by reading them."""
    results = []
    for op in ops:
        for namespace in [each for each, items in model._data.items() if not items]:
            del model._data[namespace]
        results.append(None if isinstance(op, PutOp) else plain(model.batch([op])[0]))
    model.batch([op for op in ops if isinstance(op, PutOp)])
    return results


def plain(result):
    """A result without its times, and that of a search without its order."""
    if result is None:
        return None
    if not isinstance(result, list):
        return result.namespace, result.key, result.value
    if result and not isinstance(result[0], tuple):
        return sorted(map(plain, result), key=str)
    return result


@pytest.mark.slow
@pytest.mark.parametrize("where", ["memory", "sqlite::memory:"])
@given(batches=st.lists(st.lists(puts | reads, max_size=8), min_size=1, max_size=5))
@settings(max_examples=60, deadline=None)
def test_batches_do_what_they_do_in_langgraph(where, batches):
    model = InMemoryStore()
    with LocusStore(where) as store:
        for ops in batches:
            expected = expected_of(model, ops)
            assert [plain(result) for result in store.batch(ops)] == expected


@pytest.mark.slow
@pytest.mark.parametrize("where", ["memory", "sqlite::memory:"])
@given(
    ops=st.lists(puts, max_size=12),
    search=st.tuples(st.lists(labels, max_size=2).map(tuple), filters).map(
        lambda fields: SearchOp(*fields)
    ),
    size=st.integers(1, 4),
)
@settings(max_examples=40, deadline=None)
def test_pages_add_up(where, ops, search, size):
    """Read page by page, a search gives what it gives at once, in the same order."""
    with LocusStore(where) as store:
        for op in ops:
            store.batch([op])
        [whole] = store.batch([search._replace(limit=100)])
        pages = store.batch([search._replace(limit=size, offset=at) for at in range(0, 16, size)])
        found = [hit for page in pages for hit in page]
        assert [(hit.namespace, hit.key) for hit in found] == [
            (hit.namespace, hit.key) for hit in whole
        ]


@pytest.mark.slow
@given(document=values, condition=filters)
@settings(max_examples=300, deadline=None)
def test_a_filter_means_what_it_means_in_langgraph(document, condition):
    theirs = all(_compare_values(document.get(name), each) for name, each in condition.items())
    assert compile_filter(condition).test(document) == theirs


names = st.sampled_from(["a", "b", "0", "a.b", "", "langgraph"])
leaves = st.none() | st.booleans() | numbers | st.sampled_from(["x", "0"]) | st.just(1.0)
documents = st.dictionaries(
    names,
    st.recursive(
        leaves,
        lambda inner: st.lists(inner, max_size=2) | st.dictionaries(names, inner, max_size=2),
        max_leaves=6,
    ),
    max_size=3,
)
comparisons = st.one_of(
    st.dictionaries(st.sampled_from(["$eq", "$ne", "$contains"]), leaves, min_size=1),
    st.dictionaries(st.sampled_from(["$gt", "$lte"]), numbers | st.just("x"), min_size=1),
    st.dictionaries(st.sampled_from(["$in", "$nin"]), st.lists(leaves, max_size=2), min_size=1),
    st.fixed_dictionaries({"$exists": st.booleans()}),
)
fields = st.dictionaries(
    names,
    st.recursive(
        leaves | comparisons,
        lambda inner: st.lists(leaves, max_size=2) | st.dictionaries(names, inner, max_size=2),
        max_leaves=4,
    ),
    max_size=2,
)
any_filters = st.recursive(
    fields,
    lambda inner: st.one_of(
        st.builds(lambda parts: {"$or": parts}, st.lists(inner, min_size=1, max_size=2)),
        st.builds(lambda parts: {"$and": parts}, st.lists(inner, min_size=1, max_size=2)),
        st.builds(lambda part: {"$not": part}, inner),
    ),
    max_leaves=3,
)


@pytest.mark.slow
@given(document=documents, condition=any_filters)
@settings(max_examples=300, deadline=None)
def test_the_database_is_asked_for_no_less_than_what_matches(document, condition):
    """And for exactly that where it is said to be exact."""
    compiled = compile_filter(condition)
    asked = matches(parse_filter(compiled.pushed), document, {})
    assert asked or not compiled.test(document)
    if compiled.exact:
        assert asked == compiled.test(document)


def points(texts):
    return [[float(text.count(letter)) for letter in "abc"] for text in texts]


def likeness(left, right):
    [x], [y] = points([left]), points([right])
    lengths = sum(a * a for a in x) * sum(b * b for b in y)
    return sum(a * b for a, b in zip(x, y, strict=True)) / lengths**0.5


texts = st.lists(st.text("abc", min_size=1, max_size=3), max_size=4)
indexed = st.builds(
    lambda namespace, key, found, index: PutOp(namespace, key, {"t": found}, index),
    namespaces,
    keys,
    texts,
    st.sampled_from([None, None, False, ["t[0]"], ["t[*]", "t[-1]"]]),
)


@pytest.mark.slow
@pytest.mark.parametrize("where", ["memory", "sqlite::memory:"])
@given(
    batches=st.lists(st.lists(indexed | puts, max_size=5), max_size=5),
    query=st.text("abc", min_size=1, max_size=3),
    prefix=st.lists(labels, max_size=1).map(tuple),
    limit=st.integers(1, 4),
)
@settings(max_examples=80, deadline=None)
def test_the_best_text_of_each_item_counts(where, batches, query, prefix, limit):
    """Whatever was put before, and nothing of it is left when all is deleted."""
    best = {}
    index = {"dims": 3, "embed": points, "fields": ["t[*]"]}
    with LocusStore(where, index=index) as store:
        for ops in batches:
            store.batch(ops)
            for op in ops:
                found = (op.value or {}).get("t", [])
                chosen = [] if op.index is False else found[:1] if op.index == ["t[0]"] else found
                best[op.namespace, op.key] = [likeness(query, text) for text in chosen]
        expected = sorted(
            (
                max(scores)
                for (space, _), scores in best.items()
                if scores and covers(prefix, space)
            ),
            reverse=True,
        )
        pages = store.batch(
            [SearchOp(prefix, None, limit, at, query) for at in range(0, 30, limit)]
        )
        hits = [hit for page in pages for hit in page]
        assert [hit.score for hit in hits] == pytest.approx(expected[: len(hits)], abs=1e-5)
        assert len(hits) == min(len(expected), len(range(0, 30, limit)) * limit)
        assert len({(hit.namespace, hit.key) for hit in hits}) == len(hits)
        for hit in hits:
            assert hit.score == pytest.approx(max(best[hit.namespace, hit.key]), abs=1e-5)
        store.batch([PutOp(*name, None) for name in best])
        assert blocking(store._store).search((FURTHER_VECTORS,), None, recursive=True) == []
        assert store.list_namespaces() == []


def covers(prefix, namespace):
    return namespace[: len(prefix)] == prefix
