"""Sessions of a few words whose processes are killed: a model reads each message once."""

from __future__ import annotations

import asyncio
import json
import random
import signal
import subprocess
import sys
import time
from collections import Counter

import pytest

from locus_memory.backends.sqlite.store import SQLiteStore
from locus_memory.memory.scope import Scope, user_namespace
from tests.memory.sessions.conftest import SCOPE, episodes_of
from tests.memory.sessions.talker import ROOT, USERS, NotingModel, open_manager, plan

KILLS = 12
AT_ONCE = 4


def storm(arguments, phase, after, pause):
    """Kill a process a moment after it told a phase so often; return the turns that it queued."""
    command = [sys.executable, "-m", "tests.memory.sessions.talker", *map(str, arguments)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        told = []
        for line in process.stdout:
            told.append(line.split())
            after -= told[-1][0] == phase
            if after <= 0:
                time.sleep(pause)
                process.kill()
                break
        # What was told before the kill counts as well, but for what the kill cut off.
        told += [line.split() for line in process.stdout if line.endswith("\n")]
    assert process.returncode == (0 if phase == "never" else -signal.SIGKILL)
    return [(int(each[1]), int(each[2])) for each in told if each[0] == "queued"]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
async def test_each_message_of_a_killed_session_is_in_one_completed_call(tmp_path):
    """A call is completed when its note, which names the call, is in the store.

    A kill may cut a call whose messages the model has been sent: nothing of it was written, and
    nobody can know that it was read, so another call repeats it. So what is counted is the
    completed calls. Each message is in exactly one of them, and no call mixes users. The
    calls that were cut are at most as many a kill as are made at once.
    """
    path, notes = tmp_path / "memory.db", tmp_path / "calls"
    seed = 1
    chance, sessions = random.Random(seed), plan(seed)
    number = turn = 0
    for kill in range(KILLS):
        phase, after, pause = "queued", chance.randint(10, 25), chance.random() * 0.02
        if kill % 2:
            # It answers after up to 20 milliseconds.
            phase, after, pause = "calling", 3, 0
        arguments = (path, notes, seed, number, turn)
        queued = await asyncio.to_thread(storm, arguments, phase, after, pause)
        number, turn = queued[-1] if queued else (number, turn)
        assert number < len(sessions) - 1, "the plan is over before the last kill"
    await asyncio.to_thread(storm, (path, notes, seed, number, turn), "never", 1, 0)
    model = NotingModel(notes)
    async with SQLiteStore(path) as store:
        async with open_manager(store, model) as manager:
            assert await manager.sync_now() == 0
        assert await store.list_keys(SCOPE.queue) == []
        completed = [
            note.text
            for user in USERS
            for episode in await episodes_of(store, Scope(user_namespace(SCOPE.namespace, user)))
            for note in episode.notes
        ]
    model.close()
    calls = dict(json.loads(line) for line in notes.read_text().splitlines())
    assert len(completed) == len(set(completed))
    read = Counter(text for call in completed for text in calls[call])
    assert read == Counter(text for _, _, said in sessions for text in said)
    users = {text: user for _, user, said in sessions for text in said}
    assert all(len({users[text] for text in said}) == 1 for said in calls.values())
    assert 0 < len(calls) - len(completed) <= KILLS * AT_ONCE
