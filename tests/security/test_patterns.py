"""A long text of one kind costs a regular expression no more than its length."""

import time

import pytest

from locus_memory._internal.providers import address
from locus_memory.presets import _BARE_PASSWORD, _PASSWORD
from locus_memory.resources.levels.rules import _HEADING, levels_of
from locus_memory.tools import _ARGUMENT

LONG = 20_000


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (address._SECRET, "token" * LONG),
        (address._SECRET, "-" * LONG),
        (_PASSWORD, "://" + ":" * LONG),
        (_BARE_PASSWORD, "a" + ":" * LONG),
        (_HEADING, "# a" + " " * LONG + "b"),
        (_HEADING, "#" + " " * LONG + "a\n"),
        (_ARGUMENT, "a" * LONG),
    ],
)
def test_a_pattern_takes_linear_time(pattern, text):
    started = time.process_time()
    pattern.search(text)
    assert time.process_time() - started < 0.2


def test_an_abstract_of_spaces_takes_no_time():
    started = time.process_time()
    assert levels_of("# a" + " " * 40_000 + "b\n" + " " * 40_000, "").abstract == "a b"
    assert time.process_time() - started < 0.5
