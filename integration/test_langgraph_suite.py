"""LangGraph's own tests of graphs that save, from its source package, with our saver in place."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

LEAST = 600
"""About as many such tests as LangGraph 1.2 has: fewer, and something was not run."""

KNOWN: dict[str, str] = {}
"""What fails with LangGraph's own savers too, and why. Of LangGraph 1.2.22, nothing does."""

ATTEMPTS = 3
"""Some of the tests hold the order of events to hundredths of a second."""

PLUGINS = ["pytest-mock>=3.14,<4", "syrupy>=5,<8"]
"""What those tests need beside the tests here."""

FIXTURES = Path(__file__).with_name("langgraph_savers.py")


@pytest.fixture(scope="module")
def folder(tests_of):
    """A folder with the tests of the LangGraph that is installed, and with our fixtures."""
    folder = tests_of("langgraph", plugins=PLUGINS)
    shutil.copy(FIXTURES, folder / "tests" / "conftest.py")
    (folder / "pytest.ini").write_text("[pytest]\n")
    return folder


def test_nothing_fails_with_our_saver_that_passes_with_theirs(folder, run_tests):
    files = sorted(
        f"tests/{path.name}"
        for path in (folder / "tests").glob("test_*.py")
        if "sync_checkpointer: BaseCheckpointSaver" in path.read_text()
    )
    ended = run_tests(folder, files)
    assert len(ended) >= LEAST
    failed = {name for name, passed in ended.items() if not passed}
    for _ in range(ATTEMPTS - 1):
        if failed:
            failed = {
                name for name, passed in run_tests(folder, sorted(failed)).items() if not passed
            }
    assert failed == KNOWN.keys()
