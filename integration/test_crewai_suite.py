"""The tests of CrewAI's memory, from its source package, with our storage."""

from __future__ import annotations

import pytest

pytest.importorskip("crewai", reason="it has an environment of its own: make frameworks")

LEAST = 120
"""About as many such tests as crewai 1.15 has: fewer, and something was not run."""

INTERNALS = {
    "a storage is used after `close`, which theirs does not have": (
        "test_close_drains_and_shuts_down"
    ),
}
"""The tests that do not apply, and why."""


def test_the_tests_of_their_memory_pass_with_our_storage(tests_of, run_tests):
    folder = tests_of("crewai")
    names = [f"tests/memory/test_{each}.py" for each in ("memory_root_scope", "unified_memory")]
    ended = run_tests(folder, names, "-p", "crewai_suite", "--noconftest")
    assert len(ended) >= LEAST
    failed = {name.rpartition("::")[2] for name, passed in ended.items() if not passed}
    assert failed <= set(INTERNALS.values())
