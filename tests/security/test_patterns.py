"""Every regular expression of the package takes time in proportion to its text, whatever it is."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from locus_memory.resources.levels.rules import levels_of

SCRIPT = Path(__file__).with_name("pattern_growth.py")
FEWEST = 280
"""The package has more patterns than this: a search that finds fewer has lost some."""

# Quadratic or worse, each in its own way.
SLOW = [
    r"(a+)+$",
    r"(\w+\s?)*$",
    r"\s+$",
    r"<a[^>]*>",
    r"(.*)(.*)=",
    r'[^"]*"x',
    r"(\w+)=",
    r"[\w.]+@",
    r"\d+\.?\d+$",
    r"\bx\b.*\by\b",
    r"(?:a|b|ab)*c",
    r"charset\s*=\s*[\"']?\s*(\w{1,40})",
    r"(?<![A-Za-z0-9])eyJ[\w-]{8,}\.[\w-]{8,}\.",
]
FAST = [
    "a+",
    "x[^>x]*>",
    "^ *a",
    r"\A\s*x",
    r"(?<!\s)\s+x",
    r"(?<![\w.])[\w.]++@",
    ".{1,80}?, not x",
]


def _found(*given):
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(sys.path),
        "PYTHONWARNINGS": "ignore",
    }
    done = subprocess.run(
        [sys.executable, str(SCRIPT), *given],
        env=environment,
        stdout=subprocess.PIPE,
        timeout=600,
        check=True,
    )
    return json.loads(done.stdout.splitlines()[-1])


pytestmark = pytest.mark.skipif(os.name == "nt", reason="Windows has no timers of a process")


@pytest.mark.slow
def test_all_patterns_of_the_package_are_linear():
    """The texts that are tried are made from the pattern's own parse tree."""
    found = _found()
    assert found["bad"] == []
    assert found["patterns"] > FEWEST


def test_slow_patterns_are_found_and_fast_ones_are_not():
    found = _found(*SLOW, *FAST)
    assert {each[0] for each in found["bad"]} == set(SLOW)


def test_an_abstract_of_spaces_takes_no_time():
    started = time.process_time()
    assert levels_of("# a" + " " * 40_000 + "b\n" + " " * 40_000, "").abstract == "a b"
    assert time.process_time() - started < 0.5
