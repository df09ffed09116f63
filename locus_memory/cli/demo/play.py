"""The demo, step by step: what a conversation keeps when its process is killed, and the checks."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

from locus_memory.cli.conversations.importer import TURNS, turn_key, turn_value
from locus_memory.cli.demo.agent_play import play_agent
from locus_memory.cli.demo.agent_story import DINNER, USER
from locus_memory.cli.demo.sample import (
    BRANCH,
    BRANCH_TURNS,
    FORK_AFTER,
    QUERIES,
    SAMPLE,
    load_sample,
    sample_file,
)
from locus_memory.cli.demo.stage import Stage, line_of, started
from locus_memory.cli.demo.tending_play import KEEPER, TEA_KEY, play_tending
from locus_memory.cli.options.session import Session
from locus_memory.cli.printing.output import print_json
from locus_memory.inspection.names import all_checkpoints

if TYPE_CHECKING:
    from locus_memory.backends.base import Backend

__all__ = ["play"]

_EARLIER = 10
_NEXT = (
    "threads",
    f"show {DINNER}",
    f"history home --user {USER}",
    f"undo {TEA_KEY} --user {KEEPER}",
    f"chat --user {USER}",
    "ui",
)


def play(session: Session) -> bool:
    """Play the demo on an empty database; returns whether every check held."""
    stage = Stage(session)
    # An unwritable folder fails here rather than in the other process.
    session.run(lambda backend: backend.open(), create=True)
    for step in (_kill, _resume, _search, _branch, play_agent, play_tending):
        step(stage)
    held = all(check["ok"] for check in stage.checks)
    if held:
        stage.say(f"\nAll {len(stage.checks)} checks passed. The database is {session.path}; try:")
        for command in _NEXT:
            stage.say(f"  locus-memory --url {shlex.quote(session.url)} {command}")
    else:
        stage.say("\nNOT all checks passed: see above.")
    if session.as_json:
        print_json({"ok": held, "database": str(session.path), "checks": stage.checks})
    return held


def _kill(stage: Stage) -> None:
    half = len(load_sample().messages) // 2
    stage.title("A process imports a conversation, one checkpoint per turn, and is killed half-way")
    with started(stage.session.url, "import") as child:
        for _ in range(half):
            line_of(child)
            print(file=child.stdin, flush=True)
        child.kill()
    code, kept = child.returncode, stage.session.run(_states)
    stage.say(f"process {child.pid} saved {half} turns and was killed: exit code {code}")
    stage.show("show", SAMPLE, "--last", "1")
    stage.check("the process was killed and did not end by itself", ok=code != 0)
    stage.check(
        "every acknowledged turn is complete, and no other turn is partial",
        ok=half <= len(kept) <= half + 1 and kept == _expected()[: len(kept)],
    )


async def _states(backend: Backend) -> list[Any]:
    """Return the messages at each checkpoint of the conversation, the oldest first."""
    infos = await all_checkpoints(backend.checkpointer, SAMPLE)
    states: list[Any] = [
        await backend.checkpointer.load(SAMPLE, info.checkpoint_id) for info in infos
    ]
    return [state["messages"] for state in states]


def _expected() -> list[Any]:
    """Return the same of the whole sample."""
    messages = load_sample().messages
    return [messages[: place + 1] for place in range(len(messages))]


def _resume(stage: Stage) -> None:
    stage.title("A second process continues where the first one stopped")
    before, messages = len(stage.session.run(_states)), load_sample().messages
    saved = import_the_rest(stage)
    stage.say(f"it saved {saved} turns and left the first {before} unchanged")
    stage.check(
        f"each of the {len(messages)} turns has a checkpoint with exactly the messages up to it:"
        " none lost, none repeated",
        ok=stage.session.run(_states) == _expected() and before + saved == len(messages),
    )
    items = stage.ask("ls", f"{TURNS}/{SAMPLE}")["items"]
    stage.check(
        f"each of the {len(messages)} turns was stored exactly once",
        ok=[(item["key"], item["value"], item["version"]) for item in items]
        == [(turn_key(n), turn_value(message, n), 1) for n, message in enumerate(messages, 1)],
    )


def import_the_rest(stage: Stage) -> int:
    """Import the sample with the command `import`; return how many turns it saved."""
    return int(stage.ask("import", sample_file(), "--threads")["saved"])


def _search(stage: Stage) -> None:
    stage.title("Search, and back in time: the end of the conversation at an earlier turn")
    for query, place in QUERIES.items():
        found = stage.show("search", query, "-n", TURNS, "--mode", "text", "--limit", "1")
        keys = [item["key"] for item in found["items"]]
        stage.check(f"turn {place} is found first", ok=keys == [turn_key(place)])
    past = stage.show("show", f"{SAMPLE}@{_EARLIER}", "--last", "2")["state"]["messages"]
    stage.check(
        "the past holds exactly the messages up to that turn",
        ok=past == load_sample().messages[:_EARLIER],
    )


def _branch(stage: Stage) -> None:
    stage.title(f"A fork from turn {FORK_AFTER} takes another course, and costs what is new in it")
    stage.ask("fork", f"{SAMPLE}@{FORK_AFTER}", BRANCH)
    stage.session.run(_go_on)
    difference = stage.show("diff", SAMPLE, BRANCH)["messages"]
    stage.check(
        "the fork holds the shared turns and its own turns",
        ok=stage.ask("show", BRANCH)["state"]["messages"]
        == [*load_sample().messages[:FORK_AFTER], *BRANCH_TURNS]
        and difference["common"] == FORK_AFTER,
    )
    stage.check("the original is unchanged", ok=stage.session.run(_states) == _expected())
    rows = stage.show("stats", "--deep")["threads"]
    stage.check(
        "the stored size is less than a tenth of the full JSON of every state",
        ok=all(row["stored_bytes"] * 10 < row["json_bytes"] for row in rows),
    )


async def _go_on(backend: Backend) -> None:
    state: Any = await backend.checkpointer.load(BRANCH)
    for message in BRANCH_TURNS:
        state = {**state, "messages": [*state["messages"], message]}
        await backend.checkpointer.save(state, BRANCH)
