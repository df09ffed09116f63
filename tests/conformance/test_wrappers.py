"""Wrappers keep the contract; those that differ little are in `integration/test_wrappers.py`."""

from __future__ import annotations

import pytest

from locus_memory.backends.inmemory.store import InMemoryStore
from locus_memory.encryption import names
from locus_memory.store.wrappers import (
    CachingStore,
    EmbeddingStore,
    EncryptingStore,
)
from locus_memory.testing import FakeEmbedder, StoreConformance


class TestEncryptingStore(StoreConformance):
    def make_store(self, clock, tmp_path):
        inner = InMemoryStore(clock=clock)
        return EncryptingStore(
            inner, {"old": b"o" * 16, "new": b"n" * 32}, active="new", clock=clock
        )


class Everything(frozenset):
    """A set that has everything."""

    def __contains__(self, item):
        return True

    def isdisjoint(self, other):
        return False


class TestSealedNames(StoreConformance):
    """All labels but the first, and all keys, are sealed as if the library had made them."""

    has_plain = False

    @pytest.fixture(autouse=True)
    def sealed(self, monkeypatch):
        monkeypatch.setattr(names, "_BELOW", Everything())
        monkeypatch.setattr(names, "_KEYED", Everything())

    def make_store(self, clock, tmp_path):
        store = EncryptingStore(
            InMemoryStore(clock=clock), {"k": b"k" * 32}, active="k", clock=clock
        )
        key = names.key_of_names(b"k" * 32)
        store.inner._names = names.SealedNames(key, has_plain=self.has_plain)
        return store


class TestNamesOfAnOlderDatabase(TestSealedNames):
    """Every name may still be a plain one."""

    has_plain = True


class TestCachingStore(StoreConformance):
    def make_store(self, clock, tmp_path):
        return CachingStore(InMemoryStore(clock=clock), max_items=7, clock=clock)


# What is about words and not about meaning: any text is a little like any other.
LEXICAL = """
    test_words_of_any_language_find_what_has_one_of_their_stems
    test_text_search_sees_it_too
    test_it_finds_the_items_with_a_word
    test_every_script_is_folded
    test_english_words_are_stemmed
    test_stop_words_find_nothing_by_themselves
    test_a_query_of_stop_words_alone_is_not_emptied
    test_punctuation_is_never_an_error
    test_key_names_do_not_match
    test_scripts_without_spaces
    test_text_replaces_what_the_value_says
    test_what_is_gone_is_not_found
    test_pages_of_a_query_are_exact
    test_a_filter_beside_a_query_loses_no_match
    test_a_batch_that_lost_leaves_the_text_index_alone
"""


class TestEmbeddingStore(StoreConformance):
    locals().update(dict.fromkeys(LEXICAL.split()))

    def make_store(self, clock, tmp_path):
        return EmbeddingStore(InMemoryStore(clock=clock), FakeEmbedder())


def test_the_lexical_tests_exist():
    assert all(callable(getattr(StoreConformance, name)) for name in LEXICAL.split())
