"""Normal forms of Unicode."""

from __future__ import annotations

import time
import tracemalloc
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from locus_memory.evaluation.matching import f1
from locus_memory.memory.ledger.likeness import folded
from locus_memory.memory.secrets.detection import find_secret
from locus_memory.store.text import query_words, searchable, tokens
from locus_memory.store.words.normal_forms import normalized

FORMS = ("NFC", "NFD", "NFKC", "NFKD")

RUNS = (
    "\u0301\u0316",  # Latin, above and below
    "\u064e\u0316",  # Arabic
    "\u05b0\u0301",  # Hebrew
    "\u0942\u094d\u093c",  # Hindi, whose marks stay in a word
    "\u0e38\u0e48\u0301",  # Thai
    "\u0344\u0316",  # one that is two
    "\uff9e\u3099\u0316",  # of Kana, one of them a letter
    "\u093c\u034f\u094d\u0301",  # with a joiner that folding takes away
    "\u0345\u0301",  # one that is a letter in lower case
    "\u0f73\u0f71",  # Tibetan
    "\U0001d165\U0001d16e\u0301",  # of music
    "\u3099\u094d",
)


@pytest.mark.parametrize("form", FORMS)
@given(
    text=st.one_of(
        st.text(),
        st.text(st.sampled_from("aé각か\u0915\u0301\u0316\u094d\u093c\u3099\uff9e\u034f ")),
    )
)
def test_a_text_with_few_marks_has_its_normal_form(form, text):
    """As long as no letter has more than 30 marks, nothing changes."""
    assert normalized(form, text[:30]) == unicodedata.normalize(form, text[:30])


@pytest.mark.parametrize("form", FORMS)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["", "a", "\u0915", "か", "각", " ", "—", "\u200d"]),
            st.sampled_from(RUNS),
            st.integers(0, 40),
        ),
        max_size=4,
    )
)
def test_what_is_left_keeps_its_form(form, parts):
    """The letters stay, and so does the beginning of their marks."""
    text = "".join(letter + marks * count for letter, marks, count in parts)
    found = normalized(form, text)
    assert unicodedata.is_normalized(form, found)
    letters = [each for each in unicodedata.normalize("NFKD", text) if each.isalpha()]
    left = [each for each in unicodedata.normalize("NFKD", found) if each.isalpha()]
    assert letters == left


def test_marks_count_for_their_letter():
    """Each letter has 30 of them."""
    mark = "\u0316"
    assert normalized("NFC", f"x{mark * 40}y{mark * 31}") == f"x{mark * 30}y{mark * 30}"


@pytest.mark.parametrize("run", ["\u2014", "\u0301", "\uff9e\u0316"], ids=ascii)
def test_a_run_takes_little_memory(run):
    """Else a text of 3 MB takes hundreds, also one of dashes alone."""
    text = run * 300_000
    tracemalloc.start()
    try:
        normalized("NFC", text)
        assert tracemalloc.get_traced_memory()[1] < 110 * len(text)
    finally:
        tracemalloc.stop()


READERS = {
    "normalized": lambda text: normalized("NFKC", text),
    "tokens": tokens,
    "query words": query_words,
    "searchable": lambda text: searchable(text, None),
    "sameness": folded,
    "secrets": find_secret,
    "score of an answer": lambda text: f1(text, ["one"]),
}


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize("run", RUNS, ids=ascii)
def test_marks_take_no_longer_in_one_run_than_in_many(name, run):
    """Else a message of 120,000 marks holds a thread for 17 seconds."""
    read = READERS[name]
    marks = 30_000 // len(run)
    spread = f"a{run} " * marks
    read(spread)
    apart = min(_time(read, f"{spread}{place}") for place in range(2))
    joined = min(_time(read, f"a{run * marks}{place}") for place in range(2))
    assert joined < 3 * apart + 0.05


def _time(read, text):
    start = time.process_time()
    read(text)
    return time.process_time() - start
