"""A storm of kills while sessions are buffered and distilled."""

from __future__ import annotations

import sys

import pytest

from tests.memory.sessions.test_kills import storms

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")


@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_every_buffered_turn_is_in_one_episode_after_twenty_kills(tmp_path, seed):
    await storms(tmp_path, 20, seed)
