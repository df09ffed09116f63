"""The demo, step by step: the output of each step and its checks."""

from __future__ import annotations

import shlex
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from locus_memory.cli.commands.threads.diff import render_difference
from locus_memory.cli.demo import steps
from locus_memory.cli.demo.agent_play import play_agent
from locus_memory.cli.demo.agent_story import DINNER, USER
from locus_memory.cli.demo.sample import BRANCH_TURNS, FORK_AFTER, load_sample
from locus_memory.cli.demo.stage import Stage
from locus_memory.cli.demo.tending_play import play_tending
from locus_memory.cli.demo.tending_steps import KEEPER, TEA_KEY
from locus_memory.cli.options.session import Session
from locus_memory.cli.printing.hits import print_hits
from locus_memory.cli.printing.output import print_json
from locus_memory.cli.printing.tables import print_table
from locus_memory.cli.printing.transcripts import print_transcript
from locus_memory.inspection.sizes import size_on_disk
from locus_memory.inspection.text import number
from locus_memory.store.item import StoreItem

if TYPE_CHECKING:
    from locus_memory.backends.base import Backend

__all__ = ["play"]


_NEXT = (
    "threads",
    f"show {DINNER}",
    f"history home --user {USER}",
    f"undo {TEA_KEY} --user {KEEPER}",
    f"chat --user {USER}",
    "ui",
)


def play(session: Session, path: Path) -> bool:
    """Play the demo on the empty database at `path`; returns whether every check held."""
    stage = Stage(session)
    # An unwritable folder fails here rather than in the other process.
    session.run(_touch, create=True)
    for step in (_kill, _resume, _search, _look_back, _branch, _compare, _measure):
        step(stage, path)
    play_agent(stage)
    play_tending(stage)
    held = all(check["ok"] for check in stage.checks)
    url = shlex.quote(f"sqlite:{path}")
    if held:
        stage.say(f"\nAll {len(stage.checks)} checks passed. The database is {path}; try:")
        for command in _NEXT:
            stage.say(f"  locus-memory --url {url} {command}")
    else:
        stage.say("\nNOT all checks passed: see above.")
    if session.as_json:
        print_json({"ok": held, "database": str(path), **stage.found, "checks": stage.checks})
    return held


async def _touch(backend: Backend) -> None:
    await backend.open()


def _kill(stage: Stage, path: Path) -> None:
    half = len(load_sample().messages) // 2
    stage.title("A process imports a conversation, one checkpoint per turn, and is killed half-way")
    killed = steps.import_and_kill(stage.session.url, half)
    stage.found["killed"] = killed
    stage.say(
        f"process {killed['pid']} acknowledged {killed['acknowledged']} turns, was killed by "
        f"SIGKILL and ended with exit code {killed['exit_code']}"
    )
    left = stage.session.run(partial(steps.survived, acknowledged=half))
    killed["left"] = left
    stage.say(f"{path} holds {left['checkpoints']} checkpoints and {left['items']} stored turns")
    print_transcript(stage.console, [(half, left["last_acknowledged"])])
    stage.check("the process was killed and did not end by itself", ok=killed["exit_code"] != 0)
    stage.check(
        "every acknowledged turn is complete, and no other turn is partial",
        ok=left["intact"] and 0 <= left["checkpoints"] - half <= 1,
    )


def _resume(stage: Stage, path: Path) -> None:
    del path
    stage.title("A second process continues where the first one stopped")
    resumed = steps.import_the_rest(stage.session.url)
    there = stage.session.run(steps.verify)
    stage.found["resumed"] = {**resumed, "read_back": there}
    before = stage.found["killed"]["left"]["checkpoints"]
    stage.say(f"it saved {resumed['saved']} turns and left the first {before} unchanged")
    turns = there["turns"]
    stage.check(
        f"{there['checkpoints']} checkpoints for {turns} turns, in order: none lost, none repeated",
        ok=there["in_order"] and before + resumed["saved"] == turns,
    )
    stage.check(
        f"each of the {turns} checkpoints loads exactly the messages up to its turn",
        ok=there["exact"] == turns,
    )
    stage.check(f"each of the {turns} turns was stored exactly once", ok=there["items_exact"])


def _search(stage: Stage, path: Path) -> None:
    del path
    stage.title("Search")
    found = stage.session.run(steps.search)
    stage.found["search"] = found
    for answer in found["queries"]:
        stage.say(f"> {answer['query']}")
        items = [StoreItem.from_dict(item) for item in answer["items"]]
        print_hits(stage.console, items, answer["query"])
    stage.check(
        f"a search for the words of each of the {found['turns']} turns finds that turn first",
        ok=found["found_first"] == found["turns"],
    )


def _look_back(stage: Stage, path: Path) -> None:
    del path
    stage.title("Back in time: the end of the conversation at an earlier turn")
    past = stage.session.run(steps.look_back)
    stage.found["past"] = past
    said = list(enumerate(past["messages"], 1))
    print_transcript(stage.console, said[-2:])
    messages = load_sample().messages
    stage.check(
        "it holds exactly the messages up to that turn",
        ok=past["messages"] == messages[: len(said)],
    )


def _branch(stage: Stage, path: Path) -> None:
    del path
    stage.title(f"A fork from turn {FORK_AFTER} takes another course")
    branch = stage.session.run(steps.branch)
    stage.found["branch"] = branch
    said = list(enumerate(branch["messages"], 1))
    print_transcript(stage.console, said[FORK_AFTER - 1 :])
    expected = [*load_sample().messages[:FORK_AFTER], *BRANCH_TURNS]
    stage.check(
        "the fork holds the shared turns and its own turns", ok=branch["messages"] == expected
    )
    stage.check("the original is unchanged", ok=branch["original_intact"])


def _compare(stage: Stage, path: Path) -> None:
    del path
    stage.title("A comparison of the two branches")
    difference = stage.session.run(steps.compare)
    stage.found["diff"] = difference
    render_difference(stage.console, difference)
    stage.check(
        f"they share {FORK_AFTER} messages", ok=difference["messages"]["common"] == FORK_AFTER
    )


def _measure(stage: Stage, path: Path) -> None:
    stage.title("The stored size, next to the full JSON of every state")
    rows = stage.session.run(steps.measure)
    disk = size_on_disk(path)
    stage.found["sizes"] = {"threads": rows, "disk_bytes": disk}
    names = ("thread_id", "total_checkpoints", "stored_bytes", "json_bytes")
    cells = [[*(row[name] for name in names), f"{row['ratio']:.1%}"] for row in rows]
    titles = ["thread", ">checkpoints", ">bytes stored", ">full JSON", ">ratio"]
    print_table(stage.console, titles, cells)
    stage.say(f"on disk: {number(disk or 0)} bytes, including the searchable turns")
    small = all(row["stored_bytes"] * 10 < row["json_bytes"] for row in rows)
    stage.check("the stored size is less than a tenth of the full JSON", ok=small)
