from __future__ import annotations

from datetime import date, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from locus_memory.retrieval.ranking.dates import Period, find_dates

TODAY = date(2024, 5, 15)  # a Wednesday


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


def test_days_near_new_year_are_near_one_another():
    (found,) = find_dates("on 1 January")
    assert found.covers(date(2022, 12, 30), slack=3)
    assert not found.covers(date(2022, 12, 28), slack=3)


@pytest.mark.parametrize(
    "text",
    ["May I ask?", "she may go", "march on", "31 February", "2023-13-40", "", "decide 5", "8"],
)
def test_what_is_no_date_is_not_taken_for_one(text):
    assert find_dates(text, today=TODAY) == ()


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("yesterday", date(2024, 5, 14), date(2024, 5, 14)),
        ("today", TODAY, TODAY),
        ("last week", date(2024, 5, 6), date(2024, 5, 12)),
        ("last month", date(2024, 4, 1), date(2024, 4, 30)),
        ("last year", date(2023, 1, 1), date(2023, 12, 31)),
        ("Last Friday", date(2024, 5, 10), date(2024, 5, 10)),
        ("last Wednesday", date(2024, 5, 8), date(2024, 5, 8)),
        ("three weeks ago", date(2024, 4, 24), date(2024, 4, 24)),
        ("5 months ago", date(2023, 12, 1), date(2023, 12, 31)),
        ("a day ago", date(2024, 5, 14), date(2024, 5, 14)),
    ],
)
def test_relative_dates_count_from_today(text, first, last):
    assert find_dates(text, today=TODAY) == (Period(first, last),)
    assert find_dates(text) == ()


def test_what_lies_before_the_calendar_is_no_date():
    assert find_dates("999 months ago, last year", today=date(1, 1, 1)) == ()


def test_slack_is_for_days_and_not_for_months():
    assert day(2023, 5, 8).covers(date(2023, 5, 11), slack=3)
    assert not day(2023, 5, 8).covers(date(2023, 5, 12), slack=3)
    assert not Period(date(2023, 5, 1), date(2023, 5, 31)).covers(date(2023, 6, 1), slack=3)


@settings(deadline=None, max_examples=100)
@given(st.dates(), st.integers(0, 10))
def test_a_written_day_covers_itself_and_its_slack(when, slack):
    (found,) = find_dates(f"What happened on {when.isoformat()}?")
    assert found.covers(when)
    if when < date.max - timedelta(days=20):
        assert found.covers(when + timedelta(days=slack), slack=slack)
        assert not found.covers(when + timedelta(days=slack + 1), slack=slack)


@settings(deadline=None, max_examples=200)
@given(st.text(), st.dates())
def test_no_text_is_an_error(text, today):
    for period in find_dates(text, today=today):
        assert period.first <= period.last


@pytest.mark.parametrize("text", ["May\u0131s 2023", "5 juİn", "JULİ 2023", "in the 0th month"])
def test_letters_that_only_match_regardless_of_case_make_no_error(text):
    assert find_dates(text, today=TODAY) == ()


def test_letters_that_fold_to_those_of_a_month_are_those():
    assert find_dates("1 \u017fept. 2023") == (day(2023, 9, 1),)
    assert find_dates("5 Apr\u0131l 2023") == (day(2023, 4, 5),)
    assert find_dates("ye\u017fterday", today=TODAY) == (day(2024, 5, 14),)


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
    assert isinstance(find_dates(" ".join(parts), today=TODAY), tuple)
