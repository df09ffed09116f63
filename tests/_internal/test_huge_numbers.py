"""Numbers that no float holds, and those that are none, in the options of all rooms."""

from __future__ import annotations

import dataclasses
import inspect
import math
import pkgutil
from importlib import import_module

import pytest
from hypothesis import given
from hypothesis import strategies as st

from locus_memory.backends.inmemory import InMemoryStore
from locus_memory.backends.sqlite import SQLiteStore
from locus_memory.retrieval import HybridSearch, SearchOptions
from locus_memory.testing import FakeEmbedder

ROOMS = ("retrieval", "documents", "resources", "store", "conversation")
REQUIRED = {"uri": "memory://a/b", "content": "a", "query": "a", "source": "a", "session_id": "a"}
NUMBERS = st.one_of(
    st.sampled_from([10**400, -(10**400), 2**63, -(2**63) - 1, True, False]),
    st.integers(),
    st.floats(),
)


def _options():
    for room in ROOMS:
        package = import_module(f"locus_memory.{room}")
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            module = import_module(found.name)
            for name, kind in vars(module).items():
                is_own = inspect.isclass(kind) and kind.__module__ == module.__name__
                # A result of a store is not an option.
                if is_own and not name.endswith("Result") and hasattr(kind, "__post_init__"):
                    for field in dataclasses.fields(kind):
                        if {"int", "float"} & set(str(field.type).replace("|", " ").split()):
                            yield pytest.param(kind, field.name, id=f"{name}.{field.name}")


OPTIONS = list(_options())


def test_there_are_options():
    assert len(OPTIONS) > 30


@pytest.mark.parametrize(("kind", "name"), OPTIONS)
@given(NUMBERS)
def test_a_number_is_taken_or_refused_by_name(kind, name, number):
    """No `OverflowError` of Python reaches a caller."""
    missing = [
        field.name
        for field in dataclasses.fields(kind)
        if field.default is field.default_factory is dataclasses.MISSING and field.name != name
    ]
    required = {each: REQUIRED.get(each, 0.5) for each in missing}
    refused = "locus_memory.errors: "
    try:
        kind(**required, **{name: number})
    except ValueError as error:
        refused = f"{type(error).__module__}: {error}"
    assert refused.startswith("locus_memory.errors: ")
    assert len(refused) < 400


WEIGHTS = [each.name for each in dataclasses.fields(SearchOptions)]


@pytest.mark.parametrize("open_store", [InMemoryStore, lambda: SQLiteStore(":memory:")])
@pytest.mark.parametrize("name", WEIGHTS)
async def test_the_largest_number_searches(name, open_store):
    store = open_store()
    for number in (10**400, 1.7e308, 2**63):
        try:
            options = SearchOptions(**{name: number})
        except ValueError:
            continue
        embedder = FakeEmbedder()
        vectors = await embedder.embed(["a cat", "a cat and a dog"], kind="document")
        await store.put_with_embedding(("a",), "k", "a cat", vectors[0])
        await store.put_with_embedding(("a",), "other", "a cat and a dog", vectors[1])
        hits = await HybridSearch(store, embedder, options=options).search(("a",), "cat")
        assert [hit.item.key for hit in hits] == ["k", "other"]
        assert not any(math.isnan(hit.score) for hit in hits)
    await store.close()
