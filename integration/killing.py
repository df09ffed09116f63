"""Kills of a command in the middle of its work, at a call of a function that the test names.

Run as a program, this file is the command: it stops for good at that call, and says so. So a kill
is never early or late, however busy the machine is.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from importlib import import_module
from itertools import count

STALLED = "stalled: "


def killed_at(place, call, *arguments, **options):
    """Kill a command as it calls a function; nothing of this call is done.

    Args:
        place: The function, as `module:name` or `module:Class.name`.
        call: The number of the call, from 1.
        *arguments: The arguments of `locus-memory`.
        **options: Of the process, such as `cwd`.
    """
    # This folder is no place of modules: some of its names are those of drivers.
    python = [sys.executable, "-P", "-W", "ignore", __file__]
    command = [*python, place, str(call), *map(str, arguments)]
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    ) as process:
        try:
            told = []
            for line in process.stderr:
                told.append(line)
                if line.startswith(STALLED):
                    break
            assert told, f"{place} was called less than {call} times"
            assert told[-1].startswith(STALLED), "".join(told)
            assert process.poll() is None
        finally:
            process.kill()
    assert process.returncode == -signal.SIGKILL


def stall(place, call):
    """Let this process stop for good at a call of a function."""
    module, _, name = place.partition(":")
    owner = import_module(module)
    *classes, name = name.split(".")
    for each in classes:
        owner = getattr(owner, each)
    original, calls = getattr(owner, name), count(1)

    def stalled(*args, **kwargs):
        if next(calls) == call:
            sys.stderr.write(f"{STALLED}{place}\n")
            sys.stderr.flush()
            # The end of this input is that of the test.
            sys.stdin.read()
        return original(*args, **kwargs)

    setattr(owner, name, stalled)


if __name__ == "__main__":
    from locus_memory.cli.app import run

    stall(sys.argv[1], int(sys.argv[2]))
    raise SystemExit(run(sys.argv[3:]))
