"""The steps of the demo's agent; each returns data that it read back from the database."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

from locus_memory.cli.demo import agent_story as story
from locus_memory.cli.demo.processes import started
from locus_memory.inspection.errors import CommandError
from locus_memory.memory.manager import LLMMemoryManager
from locus_memory.store.base import scan_all

if TYPE_CHECKING:
    from locus_memory.backends.base import Backend

__all__ = [
    "learn_and_kill",
    "list_memories",
    "memories",
    "messages",
    "run_to_end",
    "tool_runs",
]

_MODULE = "locus_memory.cli.demo.agent"
_UNDER_WAY = "under way"


def learn_and_kill(url: str) -> dict[str, Any]:
    """Run the agent's first part, and kill it when one tool is done and one is running."""
    with started(_MODULE, url, "learn", name="the agent's process") as child:
        awaited = {f"saved {story.FINISHED}", _UNDER_WAY}
        while awaited:
            awaited.discard(child.line())
        return {"pid": child.pid, "exit_code": child.kill()}


def run_to_end(url: str, part: str) -> int:
    """Run another part of the agent in a new process; returns its process id."""
    with started(_MODULE, url, part, name="the agent's process") as child:
        for line in child.lines():
            if line == _UNDER_WAY:
                child.go_on()
        child.finish()
        return child.pid


def list_memories(url: str) -> dict[str, Any]:
    """Return the JSON of the command `memories` for the user, from a new process."""
    command = ["--url", url, "--json", "memories", "--user", story.USER]
    done = subprocess.run(  # noqa: S603 - a module of this package
        [sys.executable, "-m", "locus_memory.cli", *command],
        stdout=subprocess.PIPE,
        check=False,
    )
    if done.returncode:
        raise CommandError(f"the command memories failed with exit code {done.returncode}")
    document: dict[str, Any] = json.loads(done.stdout)
    return document


async def messages(backend: Backend, thread_id: str) -> list[dict[str, Any]]:
    """Return the messages of a thread."""
    state = await backend.checkpointer.load(thread_id)
    found: list[dict[str, Any]] = state["messages"] if state else []
    return found


async def tool_runs(backend: Backend) -> dict[str, list[int]]:
    """Return the process ids of each tool's runs."""
    found: dict[str, list[int]] = {story.FINISHED: [], story.INTERRUPTED: []}
    async for note in scan_all(backend.store, story.TOOL_RUNS):
        found[note.value["tool"]].append(note.value["pid"])
    return found


async def memories(backend: Backend) -> list[str]:
    """Return the current memories of the user."""
    manager = LLMMemoryManager(backend.store).for_user(story.USER)
    return [memory.content async for memory in manager.memories()]
