"""The suites on the page on writing a backend, whole: `tests/` runs most of their tests."""

from __future__ import annotations

import pytest

from tests.test_examples import BACKEND_PAGE, TESTS, run_tests


@pytest.mark.slow
@pytest.mark.parametrize("block", [each for each in TESTS if each.page == BACKEND_PAGE], ids=str)
def test_python_tests(block, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run_tests(block, tmp_path)
