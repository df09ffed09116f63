"""The agent of the demo, in its own process: `locus-memory demo` kills and resumes it.

Its arguments are the database and the part to play. It prints a line when a tool's result is
saved, and a line while a message is being sent. The send continues after the process reads a
line. So the parent process knows when a tool is running, and can kill the agent then.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Iterable
from uuid import uuid4

from locus_memory.agent.events import MessageAdded
from locus_memory.agent.loop import Agent
from locus_memory.backends.base import Backend
from locus_memory.chat.scripted import ScriptedModel
from locus_memory.cli.demo import agent_story as story
from locus_memory.cli.printing.outcome import report
from locus_memory.errors import LocusMemoryError
from locus_memory.messages import Message, Role
from locus_memory.registry import open_backend
from locus_memory.store.base import BaseStore

__all__: list[str] = []


class _Tools:
    """The tools of the agent; each run of a tool writes a note to the store.

    Args:
        store: The store of the notes.
    """

    def __init__(self, store: BaseStore) -> None:
        self._store = store

    async def book_table(self, people: int, day: str) -> str:
        """Book a table in a restaurant."""
        await self._note("book_table")
        return f"A table for {people} on {day} is booked."

    async def send_message(self, to: str, text: str) -> str:
        """Send a text message."""
        await self._note("send_message")
        _tell("under way")
        if not await asyncio.to_thread(sys.stdin.readline):
            sys.exit("the demo process has gone")
        return f"Sent to {to}: {text}"

    async def _note(self, tool: str) -> None:
        await self._store.put(story.TOOL_RUNS, uuid4().hex, {"tool": tool, "pid": os.getpid()})


def _tell(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _agent(backend: Backend, script: Iterable[str | Message] = ()) -> Agent:
    tools = _Tools(backend.store)
    return Agent(
        ScriptedModel(script),
        tools=[tools.book_table, tools.send_message],
        checkpointer=backend,
        memory_manager=backend,
    )


async def _learn(backend: Backend) -> None:
    async with _agent(backend, story.LEARNING) as agent:
        await agent.run(story.INTRODUCTION, story.DINNER, user_id=story.USER)
        async for event in agent.stream(story.ERRAND, story.DINNER, user_id=story.USER):
            if isinstance(event, MessageAdded) and event.message.role == Role.TOOL:
                _tell(f"saved {event.message.name}")


async def _resume(backend: Backend) -> None:
    async with _agent(backend, story.RESUMING) as agent:
        await agent.resume(story.DINNER)
        await agent.run(story.MOVE, story.DINNER, user_id=story.USER)


async def _recall(backend: Backend) -> None:
    async with _agent(backend) as agent:
        for question in story.QUESTIONS:
            await agent.run(question, story.TRIP, user_id=story.USER)
        await agent.run(story.QUESTIONS[0], story.VISIT, user_id=story.STRANGER)


_PARTS = {"learn": _learn, "resume": _resume, "recall": _recall}


async def _play(url: str, part: str) -> None:
    async with open_backend(url) as backend:
        await _PARTS[part](backend)


if __name__ == "__main__":
    try:
        asyncio.run(_play(sys.argv[1], sys.argv[2]))
    except LocusMemoryError as problem:
        sys.exit(report(problem))
