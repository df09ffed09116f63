"""The demo's agent, step by step: the output of each step and its checks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from locus_memory.cli.commands.memory.memories import render_memories
from locus_memory.cli.demo import agent_story as story
from locus_memory.cli.demo.processes import Child, command_output
from locus_memory.cli.printing.transcripts import print_transcript
from locus_memory.memory.manager import LLMMemoryManager
from locus_memory.store.base import scan_all

if TYPE_CHECKING:
    from collections.abc import Sequence

    from locus_memory.backends.base import Backend
    from locus_memory.cli.demo.stage import Stage

__all__ = ["play_agent"]

_PROCESS = ("the agent's process", "locus_memory.cli.demo.agent")
_UNDER_WAY = "under way"


def play_agent(stage: Stage) -> None:
    """Play the part of the agent on the demo's database."""
    for step in (_learn, _resume, _recall, _show):
        step(stage)


def _learn(stage: Stage) -> None:
    stage.title("An agent learns about its user, and is killed while a tool runs")
    killed = learn_and_kill(stage.session.url)
    left = stage.session.run(_dinner)
    stage.found["agent_killed"] = {**killed, **left}
    stage.say("(the model is scripted, so the demo needs no API key; everything else is real)")
    _print(stage, left["messages"])
    stage.say(
        f"process {killed['pid']} was killed by SIGKILL during {story.INTERRUPTED}: "
        f"exit code {killed['exit_code']}"
    )
    stage.check("the agent was killed and did not end by itself", ok=killed["exit_code"] != 0)
    stage.check(
        f"{story.FINISHED} has its result, {story.INTERRUPTED} has none",
        ok=_answered(left["messages"]) == [story.FINISHED],
    )
    stage.check(
        f"remembered so far: {story.NAME} {story.OLD_HOME}",
        ok=set(left["memories"]) == {story.NAME, story.OLD_HOME},
    )


def _resume(stage: Stage) -> None:
    stage.title("A second process resumes the thread; then the user moves")
    before = stage.found["agent_killed"]
    pid = run_to_end(stage.session.url, "resume")
    now = stage.session.run(_dinner)
    stage.found["agent_resumed"] = {"pid": pid, **now}
    count = len(before["messages"])
    _print(stage, now["messages"], skip=count)
    runs, first = now["tool_runs"], before["pid"]
    stage.check(
        "the saved messages are unchanged", ok=now["messages"][:count] == before["messages"]
    )
    stage.check(
        f"{story.FINISHED} ran once, in process {first}, and was not repeated",
        ok=runs[story.FINISHED] == [first],
    )
    stage.check(
        f"{story.INTERRUPTED} ran again, in process {pid}, and has its result",
        ok=sorted(runs[story.INTERRUPTED]) == sorted([first, pid])
        and _answered(now["messages"]) == [story.FINISHED, story.INTERRUPTED],
    )
    stage.check(
        f"remembered from before the kill: {story.ALLERGY}",
        ok=story.ALLERGY in now["memories"],
    )
    stage.check(
        f"the new home replaced the old one: {story.NEW_HOME}",
        ok=set(now["memories"]) == {story.NAME, story.ALLERGY, story.NEW_HOME},
    )


def _recall(stage: Stage) -> None:
    stage.title("A third process answers on another thread, which has none of these messages")
    pid = run_to_end(stage.session.url, "recall")
    asked = stage.session.run(_elsewhere)
    stage.found["agent_recalled"] = {"pid": pid, **asked}
    _print(stage, asked["trip"])
    stage.say(f"another user, {story.STRANGER!r}, asks the same:")
    _print(stage, asked["visit"])
    stage.check(
        "every answer comes from the memories",
        ok=_texts(asked["trip"], "assistant")
        == [f"I remember: {each}" for each in (story.NEW_HOME, story.ALLERGY)],
    )
    stage.check(
        "the thread holds the questions and the answers, and no memories",
        ok=_texts(asked["trip"], "user") == list(story.QUESTIONS)
        and len(asked["trip"]) == 2 * len(story.QUESTIONS),
    )
    stage.check(
        "the agent of another user has no such memory",
        ok=_texts(asked["visit"], "assistant") == ["I do not know."],
    )


def _show(stage: Stage) -> None:
    stage.title("The memories, their source messages, and the versions they replaced")
    stage.say(f"$ locus-memory memories --user {story.USER}")
    document = list_memories(stage.session.url)
    stage.found["memories"] = document
    rows: list[dict[str, Any]] = document["memories"]
    render_memories(stage.console, document=document, with_user=False, with_sources=False)
    versions = [*rows, *(row["replaced"] for row in rows if row["replaced"])]
    said = {version["content"]: _said(version) for version in versions}
    stage.check(
        "each memory names its source message",
        ok=said
        == {
            story.NAME: [story.INTRODUCTION],
            story.OLD_HOME: [story.INTRODUCTION],
            story.ALLERGY: [story.ERRAND],
            story.NEW_HOME: [story.MOVE],
        },
    )
    replaced = {row["content"]: row["replaced"]["content"] for row in rows if row["replaced"]}
    stage.check(
        "the new home replaced the old one, and nothing else replaced anything",
        ok=replaced == {story.NEW_HOME: story.OLD_HOME},
    )


def learn_and_kill(url: str) -> dict[str, Any]:
    """Run the agent's first part, and kill it when one tool is done and one is running."""
    with Child(*_PROCESS, url, "learn") as child:
        awaited = {f"saved {story.FINISHED}", _UNDER_WAY}
        while awaited:
            awaited.discard(child.line())
        child.kill()
        return {"pid": child.pid, "exit_code": child.wait()}


def run_to_end(url: str, part: str) -> int:
    """Run another part of the agent in a new process; returns its process id."""
    with Child(*_PROCESS, url, part) as child:
        for line in child.lines():
            if line == _UNDER_WAY:
                child.go_on()
        child.finish()
        return child.pid


def list_memories(url: str) -> Any:
    """Return the JSON of the command `memories` for the user, from a new process."""
    command = ("--url", url, "memories", "--user", story.USER)
    return command_output("the command memories", *command)


async def _dinner(backend: Backend) -> dict[str, Any]:
    """Return what is there of the first thread, the tools that ran for it, and the memories."""
    runs: dict[str, list[int]] = {story.FINISHED: [], story.INTERRUPTED: []}
    async for note in scan_all(backend.store, story.TOOL_RUNS):
        runs[note.value["tool"]].append(note.value["pid"])
    manager = LLMMemoryManager(backend.store).for_user(story.USER)
    return {
        "messages": await _messages(backend, story.DINNER),
        "tool_runs": runs,
        "memories": [memory.content async for memory in manager.memories()],
    }


async def _elsewhere(backend: Backend) -> dict[str, Any]:
    return {
        "trip": await _messages(backend, story.TRIP),
        "visit": await _messages(backend, story.VISIT),
    }


async def _messages(backend: Backend, thread_id: str) -> list[dict[str, Any]]:
    state = await backend.checkpointer.load(thread_id)
    return state["messages"] if state else []


def _print(stage: Stage, messages: Sequence[dict[str, Any]], skip: int = 0) -> None:
    print_transcript(stage.console, list(enumerate(messages, 1))[skip:])


def _answered(messages: Sequence[dict[str, Any]]) -> list[str]:
    """Return the tools with a result, in order."""
    return [message["name"] for message in messages if message["role"] == "tool"]


def _texts(messages: Sequence[dict[str, Any]], role: str) -> list[str]:
    return [message["content"] for message in messages if message["role"] == role]


def _said(version: dict[str, Any]) -> list[str | None]:
    return [source["text"] for source in version["sources"]]
