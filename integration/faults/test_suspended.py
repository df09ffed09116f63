"""A process that is suspended while it changes a thread of `file:`, before each of its steps."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from contextlib import contextmanager

import pytest

from locus_memory import FileCheckpointer
from locus_memory.errors import BackendTimeoutError

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGSTOP"),
]

# It stops before another system call that changes what is in a folder, or at the end.
SUSPENDED = """
import asyncio, os, signal, sys, threading
from locus_memory import FileCheckpointer

base, verb, step = sys.argv[1], sys.argv[2], int(sys.argv[3])
steps = iter(range(step))

def stop():
    print("stopped", flush=True)
    # This thread: another one could be told later.
    signal.pthread_kill(threading.get_ident(), signal.SIGSTOP)

async def main():
    checkpointer = FileCheckpointer(base, state_type=None)
    for name in ("fsync", "replace", "rename", "unlink", "rmdir", "mkdir"):
        def call(*arguments, real=getattr(os, name), **options):
            if next(steps, None) is None:
                stop()
            return real(*arguments, **options)
        setattr(os, name, call)
    if verb == "save":
        await checkpointer.save({"messages": ["again"] * 50}, "t", "c3")
    elif verb == "prune":
        await checkpointer.prune("t", keep_last=2)
    else:
        await checkpointer.delete("t", *([] if verb == "delete" else ["c7"]))

asyncio.run(main())
print("done", flush=True)
"""

NAMES = [f"c{n}" for n in range(8)][::-1]
LEFT = {
    "save": ["c3", *(name for name in NAMES if name != "c3")],
    "prune": NAMES[:2],
    "delete": [],
    "delete one": NAMES[1:],
}


def state(n):
    return {"messages": [f"{each}" * 20 for each in range(n + 20)]}


@contextmanager
def suspended(base, verb, step):
    """Suspend a process before a step of its work; yields whether, and the process."""
    command = [sys.executable, "-W", "ignore", "-c", SUSPENDED, str(base), verb, str(step)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            is_stopped = process.stdout.readline() == "stopped\n"
            if is_stopped:
                os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)
            yield is_stopped, process
        finally:
            process.kill()


@pytest.mark.parametrize("verb", LEFT)
async def test_readers_go_on_and_writers_have_a_limit(tmp_path, verb):
    found, step, timeouts = [], 0, 0
    while True:
        base = tmp_path / str(step)
        async with FileCheckpointer(base, state_type=None, busy_timeout=0.1) as checkpointer:
            for n in range(8):
                await checkpointer.save(state(n), "t", f"c{n}")
            with suspended(base, verb, step) as (is_stopped, _):
                if not is_stopped:
                    assert await checkpointer.list_checkpoints("t", 100) == LEFT[verb]
                    break
                async with asyncio.timeout(10):
                    names = await checkpointer.list_checkpoints("t", 100)
                    assert names in (NAMES, LEFT[verb])
                    for name in names:
                        assert await checkpointer.load("t", name)
                    assert await checkpointer.list_threads() == ["t"] * bool(names)
                    await checkpointer.save({}, "u")
                    try:
                        await checkpointer.save({}, "t", "later")
                    except BackendTimeoutError:
                        timeouts += 1
                found.append(names)
        step += 1
    assert NAMES in found
    assert LEFT[verb] in found
    assert timeouts >= step - 2


async def test_calls_that_wait_stop_nothing_else(tmp_path):
    async with FileCheckpointer(tmp_path, state_type=None, busy_timeout=3) as checkpointer:
        await checkpointer.save(state(0), "t", "c0")
        with suspended(tmp_path, "save", 2) as (is_stopped, _):
            assert is_stopped
            waiting = [asyncio.create_task(checkpointer.save({}, "t")) for _ in range(200)]
            await asyncio.sleep(0.5)
            async with asyncio.timeout(2):
                await asyncio.get_running_loop().getaddrinfo("localhost", 80)
                await checkpointer.save({"n": 1}, "u")
                assert await checkpointer.load("t") == state(0)
            async with asyncio.timeout(10):
                ended = await asyncio.gather(*waiting, return_exceptions=True)
        assert {type(each) for each in ended} == {BackendTimeoutError}


async def test_a_process_that_goes_on_is_waited_for(tmp_path):
    async with FileCheckpointer(tmp_path, state_type=None) as checkpointer:
        await checkpointer.save(state(0), "t", "c0")
        with suspended(tmp_path, "save", 2) as (is_stopped, process):
            assert is_stopped
            saving = asyncio.create_task(checkpointer.save({"n": 1}, "t", "mine"))
            await asyncio.sleep(0.5)
            assert not saving.done()
            for _ in range(100):
                # It stops again before each of its other steps.
                process.send_signal(signal.SIGCONT)
                await asyncio.sleep(0.02)
            assert await saving == "mine"
            assert await checkpointer.list_checkpoints("t") == ["mine", "c3", "c0"]
