"""The demo's agent, step by step: the output of each step and its checks."""

from __future__ import annotations

from typing import Any

from locus_memory.cli.demo import agent_story as story
from locus_memory.cli.demo.stage import Stage, line_of, started
from locus_memory.inspection.errors import CommandError

__all__ = ["play_agent"]

_MEMORIES = ("memories", "--user", story.USER)


def play_agent(stage: Stage) -> None:
    """Play the part of the agent on the demo's database."""
    stage.title("An agent learns about its user, and is killed while a tool runs")
    stage.say("(the model is scripted, so the demo needs no API key; everything else is real)")
    first, code = learn_and_kill(stage.session.url)
    before = stage.show("show", story.DINNER)["state"]["messages"]
    stage.say(f"process {first} was killed during {story.INTERRUPTED}: exit code {code}")
    stage.check("the agent was killed and did not end by itself", ok=code != 0)
    stage.check(
        f"{story.FINISHED} has its result, {story.INTERRUPTED} has none",
        ok=_answered(before) == [story.FINISHED],
    )
    _check_memories(stage, story.NAME, story.OLD_HOME)
    stage.title("A second process resumes the thread; then the user moves")
    second = run_to_end(stage.session.url, "resume")
    after = stage.show("show", story.DINNER)["state"]["messages"]
    runs = stage.ask("ls", story.TOOL_RUNS)["items"]
    ran = sorted((run["value"]["tool"], run["value"]["pid"]) for run in runs)
    again = [(story.INTERRUPTED, pid) for pid in (first, second)]
    stage.check("the saved messages are unchanged", ok=after[: len(before)] == before)
    stage.check(
        f"{story.FINISHED} ran once, in process {first}; {story.INTERRUPTED} ran again, in process"
        f" {second}, and has its result",
        ok=ran == sorted([(story.FINISHED, first), *again])
        and _answered(after) == [story.FINISHED, story.INTERRUPTED],
    )
    _check_memories(stage, story.NAME, story.ALLERGY, story.NEW_HOME)
    _recall(stage)


def _recall(stage: Stage) -> None:
    stage.title("A third process answers on another thread, which has none of these messages")
    run_to_end(stage.session.url, "recall")
    trip = stage.show("show", story.TRIP)["state"]["messages"]
    stage.say(f"another user, {story.STRANGER!r}, asks the same:")
    visit = stage.show("show", story.VISIT)["state"]["messages"]
    told = [f"I remember: {each}" for each in (story.NEW_HOME, story.ALLERGY)]
    expected = [text for pair in zip(story.QUESTIONS, told, strict=True) for text in pair]
    stage.check(
        "every answer comes from the memories, and the thread holds none of them",
        ok=[each["content"] for each in trip] == expected,
    )
    stage.check(
        "the agent of another user has no such memory",
        ok=[each["content"] for each in visit] == [story.QUESTIONS[0], "I do not know."],
    )
    stage.title("The memories, their source messages, and the versions they replaced")
    rows = stage.show(*_MEMORIES)["memories"]
    replaced = {row["content"]: row["replaced"] for row in rows if row["replaced"]}
    said = {
        each["content"]: [source["text"] for source in each["sources"]]
        for each in (*rows, *replaced.values())
    }
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
    stage.check(
        "the new home replaced the old one, and nothing else replaced anything",
        ok=[(new, old["content"]) for new, old in replaced.items()]
        == [(story.NEW_HOME, story.OLD_HOME)],
    )


def learn_and_kill(url: str) -> tuple[int, int]:
    """Run the agent's first part, and kill it when one tool is done and one is running."""
    with started(url, "learn") as child:
        awaited = {f"saved {story.FINISHED}", story.UNDER_WAY}
        while awaited:
            awaited.discard(line_of(child))
        child.kill()
        return child.pid, child.wait()


def run_to_end(url: str, part: str) -> int:
    """Run another part of the agent in a new process; returns its process id.

    Raises:
        CommandError: It failed.
    """
    with started(url, part) as child:
        # A tool that waits goes on at once.
        child.communicate("\n")
    if child.returncode:
        raise CommandError(f"a process of the demo ended with exit code {child.returncode}")
    return child.pid


def _answered(messages: list[dict[str, Any]]) -> list[str]:
    """Return the tools with a result, in order."""
    return [message["name"] for message in messages if message["role"] == "tool"]


def _check_memories(stage: Stage, *expected: str) -> None:
    stage.check(
        f"remembered so far: {' '.join(expected)}",
        ok={row["content"] for row in stage.ask(*_MEMORIES)["memories"]} == set(expected),
    )
