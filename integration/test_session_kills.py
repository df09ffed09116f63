"""A storm of kills while sessions are buffered and distilled."""

from __future__ import annotations

import sys

import pytest

from tests.memory.sessions.kills import storms

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")


@pytest.mark.parametrize(("kills", "seed"), [(4, 1), (20, 1), (20, 2), (20, 3)])
async def test_every_buffered_turn_is_in_one_episode_after_kills(tmp_path, kills, seed):
    await storms(tmp_path, kills, seed)
