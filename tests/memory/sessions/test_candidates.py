"""Facts that are known already, in other words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from locus_memory.memory.ledger.ledger import Statement
from locus_memory.memory.models import Memory, MemoryType
from locus_memory.memory.sessions.candidates import is_known_as, sift

SAME = [
    ("The user lives in Graz.", "The user is living in Graz"),
    ("The user's cats are called Bosun and Mo.", "The user's cat is called Bosun, and Mo"),
    (
        "Ada prefers to write the integration tests before the code.",
        "ada prefers writing integration tests before the code",
    ),
]
OTHER = [
    ("The user likes tea.", "The user does not like tea."),
    ("The user likes tea.", "The user doesn't like tea."),
    ("The user never eats meat.", "The user eats meat."),
    ("The user lives in Graz.", "The user lives in Wien."),
    # Nine common words, and one that tells them apart.
    (
        "The release of the Apollo web client for customer Berlin ships after tests on 4 May.",
        "The release of the Apollo web client for customer Berlin ships after tests on 5 May.",
    ),
    (
        "The weekly planning meeting of the small backend team takes place on Monday.",
        "The weekly planning meeting of the small backend team takes place on Friday.",
    ),
    ("???", "!!!"),
]


@pytest.mark.parametrize(("new", "known"), SAME)
def test_other_words_for_the_same(new, known):
    assert is_known_as(new, known)


@pytest.mark.parametrize(("one", "other"), OTHER)
def test_two_facts_stay_two(one, other):
    assert not is_known_as(one, other)
    assert not is_known_as(other, one)


words = st.lists(
    st.sampled_from(["graz", "wien", "tea", "not", "never", "4", "Ada", "May", "likes"]), max_size=6
)


def statement(key, content):
    return Statement(Memory(MemoryType.USER, key, content))


@pytest.mark.slow
@given(st.lists(st.tuples(st.sampled_from("abc"), words.map(" ".join)), max_size=6))
def test_what_is_written_is_not_known_again(pairs):
    """Sifting the written facts again writes none of them under another key."""
    edits = [statement(key, content) for key, content in pairs if content.strip()]
    written = sift(edits, {}).edits
    assert len({edit.key for edit in written}) <= 3
    current = {edit.key: edit.memory for edit in written}
    fresh = [statement(f"new {key}", memory.content) for key, memory in current.items()]
    again = sift(fresh, {MemoryType.USER: list(current.values())})
    assert [edit.memory.content for edit in again.edits if not _is_wordless(edit)] == []


def _is_wordless(edit):
    return not is_known_as(edit.memory.content, edit.memory.content)


@pytest.mark.slow
@given(words.map(" ".join), words.map(" ".join))
def test_a_fact_with_another_negation_is_never_known(one, other):
    assert not is_known_as(f"{one} not {other} home", f"{one} {other} home")
