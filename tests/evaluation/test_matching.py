from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from locus_memory.errors import InvalidArgumentError
from locus_memory.evaluation.matching import exact_match, f1

TEXTS = st.text(max_size=40)


@pytest.mark.parametrize(
    ("answer", "expected", "same", "shared"),
    [
        ("7 May 2023", ["May 7, 2023"], False, 1.0),
        ("The parrot.", ["a parrot"], True, 1.0),
        ("a parrot called Figaro", ["Figaro"], False, 0.5),
        ("Figaro", ["Otello", "figaro!"], True, 1.0),
        ("$1,200.50", ["120050"], True, 1.0),
        ("No idea", ["Figaro"], False, 0.0),
        ("STRASSE", ["Straße"], True, 1.0),
        ("ﬁve", ["five"], True, 1.0),
        ("花生", ["花生。"], True, 1.0),
        ("花生过敏", ["花生"], False, 2 / 3),
        ("की", ["का"], False, 0.0),
        ("ёлка и мёд", ["мёд"], False, 0.5),
        ("", [""], True, 1.0),
        ("", ["Figaro"], False, 0.0),
        ("?!", ["the"], True, 1.0),
        ("to be or not to be", ["to be"], False, 0.5),
        ("Figaro", ["Figaro Figaro"], False, 2 / 3),
    ],
)
def test_figures_that_are_known(answer, expected, same, shared):
    assert exact_match(answer, expected) is same
    assert f1(answer, expected) == pytest.approx(shared)


@given(TEXTS, st.lists(TEXTS, min_size=1, max_size=4))
def test_what_matches_has_the_highest_f1(answer, expected):
    share = f1(answer, expected)
    assert 0 <= share <= 1
    assert share == 1 or not exact_match(answer, expected)
    assert exact_match(answer, [*expected, answer])
    assert f1(answer, [*expected, answer]) == 1


@given(TEXTS, TEXTS)
def test_f1_is_symmetric(one, other):
    assert f1(one, [other]) == f1(other, [one])


def test_nothing_expected_is_no_figure():
    for figure in (exact_match, f1):
        with pytest.raises(InvalidArgumentError, match="nothing to compare"):
            figure("Figaro", [])
