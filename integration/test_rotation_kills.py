"""A rotation that is killed anywhere loses nothing, and the next one does the rest."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import random
import signal
import subprocess
import sys
import time

import pytest

from locus_memory.encryption import EncryptionKeys
from locus_memory.registry import open_backend

KILLS = 12
THREADS, TURNS, ITEMS = 12, 20, 400
OLD, NEW = (f"{name}={base64.b64encode(name.encode() * 8).decode()}" for name in ("ab", "cd"))
ROTATE = [sys.executable, "-m", "locus_memory.cli", "rotate", "--json", "--url"]

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")


URLS = {"sqlite": "sqlite:{}/agent.db", "file": "file:{}/checkpoints"}


def state(thread, turn):
    return {"messages": [f"{thread}: {number}" for number in range(turn)]}


async def fill(url):
    async with open_backend(url, state_type=None, encryption=OLD) as backend:
        for thread in range(THREADS):
            for turn in range(TURNS):
                await backend.checkpointer.save(state(thread, turn), f"t{thread}", f"c{turn}")
        if not url.startswith("file:"):
            rows = [(("n", str(each % 7)), f"k{each}", {"n": each}) for each in range(ITEMS)]
            await backend.store.put_batch(rows)


async def check(url, keys):
    async with open_backend(url, state_type=None, encryption=keys) as backend:
        for thread in range(THREADS):
            for turn in range(TURNS):
                found = await backend.checkpointer.load(f"t{thread}", f"c{turn}")
                assert found == state(thread, turn)
        if not url.startswith("file:"):
            for each in range(ITEMS):
                assert await backend.store.get(("n", str(each % 7)), f"k{each}") == {"n": each}


@pytest.mark.parametrize("provider", URLS)
def test_killed_anywhere(provider, tmp_path):
    url = URLS[provider].format(tmp_path)
    asyncio.run(fill(url))
    environment = {**os.environ, "LOCUS_MEMORY_ENCRYPTION_KEYS": f"{NEW},{OLD}"}
    started = time.monotonic()
    done = subprocess.run(
        [*ROTATE, url, "--dry-run"], env=environment, check=True, stdout=subprocess.DEVNULL
    )
    startup = time.monotonic() - started
    assert done.returncode == 0
    killed = 0
    for _ in range(KILLS):
        process = subprocess.Popen([*ROTATE, url], env=environment, stdout=subprocess.DEVNULL)
        time.sleep(startup * random.uniform(0.4, 1.1))
        process.send_signal(signal.SIGKILL)
        killed += process.wait() == -signal.SIGKILL
        asyncio.run(check(url, EncryptionKeys.parse(f"{OLD},{NEW}")))
    assert killed
    rest = subprocess.run([*ROTATE, url], env=environment, check=True, capture_output=True)
    report = json.loads(rest.stdout)
    assert (report["checkpoints"], report["items"]) == (
        THREADS * TURNS,
        0 if provider == "file" else ITEMS,
    )
    asyncio.run(check(url, EncryptionKeys.parse(NEW)))
