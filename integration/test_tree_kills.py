"""A storm of kills of writers of a tree, and longer runs of its state machine."""

from __future__ import annotations

import sys

import pytest

from tests.resources.test_kills import storm

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")


def test_no_kill_leaves_half_an_entry(tmp_path):
    storm(tmp_path / "tree.db", 40)
