from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from locus_memory.retrieval.ranking.dates import Period, find_dates


def day(year, month, number):
    return Period(date(year, month, number), date(year, month, number))


@pytest.mark.parametrize(
    "text",
    [
        "on 8 May 2023?",
        "on 8 May, 2023",
        "the 8th of May 2023",
        "May 8, 2023",
        "may 8th 2023",
        "2023-05-08",
        "8 MAY 2023",
    ],
)
def test_a_day_is_read_however_it_is_written(text):
    assert find_dates(text) == (day(2023, 5, 8),)


@pytest.mark.parametrize("text", ["in May 2023", "May, 2023", "May of 2023"])
def test_a_month_is_all_of_its_days(text):
    assert find_dates(text) == (Period(date(2023, 5, 1), date(2023, 5, 31)),)


def test_a_date_without_a_year_is_of_every_year():
    (found,) = find_dates("What happened on 29 February?")
    assert found.every_year
    assert found.covers(date(2024, 2, 29))
    (spring,) = find_dates("What did she plant in March?")
    assert spring.covers(date(1999, 3, 31))
    assert not spring.covers(date(1999, 4, 1))


@pytest.mark.parametrize(
    "text",
    ["May I ask?", "she may go", "march on", "31 February", "2023-13-40", "", "decide 5", "8"],
)
def test_what_is_no_date_is_not_taken_for_one(text):
    assert find_dates(text) == ()


@settings(deadline=None, max_examples=100)
@given(st.dates(), st.dates())
def test_a_written_day_covers_itself_alone(when, other):
    (found,) = find_dates(f"What happened on {when.isoformat()}?")
    assert found.covers(when)
    assert found.covers(other) == (when == other)


@settings(deadline=None, max_examples=200)
@given(st.text())
def test_no_text_is_an_error(text):
    for period in find_dates(text):
        assert period.first <= period.last


@pytest.mark.parametrize("text", ["May\u0131s 2023", "5 juİn", "JULİ 2023", "in the 0th month"])
def test_letters_that_only_match_regardless_of_case_make_no_error(text):
    assert find_dates(text) == ()


def test_letters_that_fold_to_those_of_a_month_are_those():
    assert find_dates("1 \u017fept. 2023") == (day(2023, 9, 1),)
    assert find_dates("5 Apr\u0131l 2023") == (day(2023, 4, 5),)


_PARTS = [
    "5",
    "april",
    "MAİ",
    "apr\u0131l",
    "\u017fept.",
    "junİo",
    "2023",
    "in",
    "de",
    "last",
    "\u017funday",
    "三月",
]


@given(st.lists(st.sampled_from(_PARTS), max_size=6))
def test_no_spelling_is_an_error(parts):
    assert isinstance(find_dates(" ".join(parts)), tuple)
