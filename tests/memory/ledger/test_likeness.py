"""When two facts are the same."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from locus_memory.memory.ledger.likeness import folded, made_up_key, same_content
from locus_memory.memory.secrets.detection import find_secret


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Ada likes tea.", "ADA  likes\tTea. "),
        ("Stra\u00dfe 5", "STRASSE 5"),
        ("caf\u00e9", "cafe\u0301"),
        ("\uff21\uff44\uff41 has 3 cats", "Ada has \uff13 cats"),
        ("\ufb01sh", "fish"),
        ("\ud55c\uad6d", "\u1112\u1161\u11ab\u1100\u116e\u11a8"),
        ("a\u3000b", "a b"),
    ],
)
def test_forms_of_characters_case_and_spaces_do_not_count(one, other):
    assert folded(one) == folded(other)
    assert made_up_key(one).rpartition("-")[2] == made_up_key(other).rpartition("-")[2]


@given(st.text())
def test_folding_again_changes_nothing(text):
    assert folded(folded(text)) == folded(text)


def test_under_one_key_only_spaces_do_not_count():
    assert same_content("Ada  likes\ttea. ", "Ada likes tea.")
    assert not same_content("Ada likes tea.", "ada likes tea.")


@given(st.text(min_size=1, max_size=300))
def test_a_made_up_key_is_short_and_never_empty(text):
    assert 6 <= len(made_up_key(text)) <= 64


def test_a_made_up_key_does_not_look_like_a_secret():
    for number in range(500):
        assert find_secret(made_up_key(f"The user eats meat {'very ' * number}often.")) is None
