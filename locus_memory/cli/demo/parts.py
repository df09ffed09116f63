"""The parts of the demo that run in a process of their own: `locus-memory demo` kills some.

The arguments are the database and the part. Where a process can be killed, it prints a line, and
waits until it reads one. So the parent process knows its progress, and can kill it at work.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Iterable
from typing import Any
from uuid import uuid4

from locus_memory.agent.events import MessageAdded
from locus_memory.agent.loop import Agent
from locus_memory.backends.base import Backend
from locus_memory.chat.scripted import ScriptedModel
from locus_memory.cli.conversations.importer import import_conversation
from locus_memory.cli.demo import agent_story as story
from locus_memory.cli.demo.sample import load_sample
from locus_memory.cli.printing.outcome import report
from locus_memory.errors import LocusMemoryError
from locus_memory.inspection.errors import CommandError
from locus_memory.messages import Message, Role
from locus_memory.registry import open_backend
from locus_memory.store.base import BaseStore

__all__: list[str] = []

_BATCH = 8


async def _import(backend: Backend) -> None:
    await import_conversation(
        backend, load_sample(), on_turn=lambda turns: _wait(f"{turns}"), batch=_BATCH
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


def _agent(backend: Backend, script: Iterable[str | Message] = ()) -> Agent:
    return Agent(
        ScriptedModel(script),
        tools=_tools(backend.store),
        checkpointer=backend,
        memory_manager=backend,
    )


def _tools(store: BaseStore) -> list[Callable[..., Any]]:
    """Return the tools of the agent; each run of one writes a note to the store."""

    async def note(tool: str) -> None:
        value = {"tool": tool, "pid": os.getpid()}
        await store.put((story.TOOL_RUNS,), uuid4().hex, value)

    async def book_table(people: int, day: str) -> str:
        """Book a table in a restaurant."""
        await note("book_table")
        return f"A table for {people} on {day} is booked."

    async def send_message(to: str, text: str) -> str:
        """Send a text message."""
        await note("send_message")
        await asyncio.to_thread(_wait, story.UNDER_WAY)
        return f"Sent to {to}: {text}"

    return [book_table, send_message]


def _tell(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _wait(line: str) -> None:
    _tell(line)
    if not sys.stdin.readline():
        sys.exit("the demo process has gone")


_PARTS = {"import": _import, "learn": _learn, "resume": _resume, "recall": _recall}


async def _play(url: str, part: str) -> None:
    async with open_backend(url) as backend:
        await _PARTS[part](backend)


if __name__ == "__main__":
    try:
        asyncio.run(_play(sys.argv[1], sys.argv[2]))
    except (CommandError, LocusMemoryError) as problem:
        sys.exit(report(problem))
