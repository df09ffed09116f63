"""What a hook of a coding agent costs, and the import of the package, by turns with bare Python.

It prints the processor time of each process, and the time on the clock, which tells little on a
busy machine. A hook is `served` where the MCP server of a session answers it.
Run it by itself: `python tests/benchmarks/hooks.py [TURNS] [MEMORIES]`.
"""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROUNDS = 15
HOOK = (sys.executable, "-P", "-m", "locus_memory", "hook")
AT_ONCE = 250
QUESTION = 8


async def fill(folder: str, turns: int, memories: int) -> str:
    """Keep turns and memories of a project; returns a question that many of them have a word of."""
    from scale_data import texts  # noqa: PLC0415 - this process stays small

    from locus_memory import LLMMemoryManager, Memory, Message  # noqa: PLC0415 - this process stays small
    from locus_memory.plug.hook import Settings  # noqa: PLC0415 - this process stays small

    settings, said = Settings.read([]), texts(turns + memories, 1)
    project = settings.project(folder)
    async with LLMMemoryManager(settings.url, extract_mode="manual") as manager:
        for start in range(0, turns, AT_ONCE):
            part = said[start : min(start + AT_ONCE, turns)]
            told = [Message.user(each) for each in part]
            await manager.add(told, user_id=project, thread_id=f"session-{start}")
        owner = manager.for_user(project)
        for start in range(turns, len(said), AT_ONCE):
            part = said[start : start + AT_ONCE]
            facts = [Memory(key=f"{start + n}", content=each) for n, each in enumerate(part)]
            await owner.save(facts)
    return " ".join(said[turns // 2].split()[:QUESTION]) + "?"


def cost(command: list[str], given: bytes) -> tuple[float, float, float]:
    """Return the processor time of a process and that on the clock, in milliseconds, and megabytes.

    The memory of a process is at least that of the one that starts it, so this one stays small.
    """
    begun = time.perf_counter()
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as process:
        assert process.stdin is not None
        process.stdin.write(given)
        process.stdin.close()
        rusage = os.wait4(process.pid, 0)[2]
        process.returncode = 0
    clock = (time.perf_counter() - begun) * 1e3
    return (rusage.ru_utime + rusage.ru_stime) * 1e3, clock, rusage.ru_maxrss / 1024


def rounds(runs: dict[str, tuple[list[str], bytes]]) -> dict[str, list[tuple[float, float, float]]]:
    """Return the costs of processes, by turns; the first ones warm up."""
    found: dict[str, list[tuple[float, float, float]]] = {name: [] for name in runs}
    for _ in range(ROUNDS + 1):
        for name, run in runs.items():
            found[name].append(cost(*run))
    return found


def used(process: subprocess.Popen[bytes]) -> float:
    """Return the processor time of a process that runs, in milliseconds."""
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:13])) * 1e3 / os.sysconf("SC_CLK_TCK")


def main(turns: str = "100000", memories: str = "10000") -> None:
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_DATA_HOME"] = folder
        project = Path(folder, "shop")
        (project / ".git").mkdir(parents=True)
        Path(folder, "locus_memory").mkdir()
        filling = [sys.executable, __file__, "fill", str(project), turns, memories]
        # As pip does when it installs a package, the first round compiles what the others load.
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        os.environ["PYTHONPYCACHEPREFIX"] = str(Path(folder, "compiled"))
        question = subprocess.run(filling, check=True, stdout=subprocess.PIPE, text=True).stdout

        def hook(event: str, prompt: str = "") -> tuple[list[str], bytes]:
            told = {"hook_event_name": event, "session_id": "one", "cwd": str(project)}
            return [*HOOK, "claude-code"], json.dumps({**told, "prompt": prompt}).encode()

        bare = [sys.executable, "-c"]
        runs: dict[str, tuple[list[str], bytes]] = {
            "python -c pass": ([*bare, "pass"], b""),
            "import locus_memory": ([*bare, "import locus_memory"], b""),
            "locus-memory --version": ([sys.executable, "-m", "locus_memory", "--version"], b""),
            "import the manager": ([*bare, "from locus_memory import LLMMemoryManager"], b""),
            "hook: start": hook("SessionStart"),
            "hook: thanks": hook("UserPromptSubmit", "Thanks!"),
            "hook: question": hook("UserPromptSubmit", question),
        }
        found = rounds(runs)
        with subprocess.Popen(
            [*HOOK, "mcp"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL
        ) as server:
            while not [*Path(folder, "locus_memory", "run").glob("*")]:
                time.sleep(0.1)
            begun = used(server)
            served = {f"{name}, served": runs[name] for name in runs if "hook" in name}
            found |= rounds(served)
            share = (used(server) - begun) / (ROUNDS + 1) / len(served)
            server.kill()
    print(f"{'a hook in its server':24}{share:7.0f} ms on average")
    for name, rows in found.items():
        times, clocks, sizes = zip(*rows[1:], strict=True)
        middle, least = statistics.median(times), min(times)
        told = (
            f"{middle:7.0f} ms, least {least:5.0f}, on the clock {statistics.median(clocks):6.0f}"
        )
        print(f"{name:24}{told}{max(sizes):6.0f} MB")


if __name__ == "__main__":
    if sys.argv[1:2] == ["fill"]:
        print(asyncio.run(fill(sys.argv[2], *map(int, sys.argv[3:]))))
    else:
        main(*sys.argv[1:])
