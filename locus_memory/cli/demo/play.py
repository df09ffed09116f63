"""The demo, step by step: what a conversation keeps when its process is killed, and the checks."""

from __future__ import annotations

import shlex
from functools import partial
from typing import TYPE_CHECKING, Any

from locus_memory.cli.commands.threads.diff import compare_references, render_difference
from locus_memory.cli.conversations.importer import TURNS, checkpoint_ids, turn_key, turn_value
from locus_memory.cli.demo.agent_play import play_agent
from locus_memory.cli.demo.agent_story import DINNER, USER
from locus_memory.cli.demo.processes import Child, command_output
from locus_memory.cli.demo.sample import (
    BRANCH,
    BRANCH_TURNS,
    FORK_AFTER,
    QUERIES,
    SAMPLE,
    load_sample,
    sample_bytes,
)
from locus_memory.cli.demo.stage import Stage
from locus_memory.cli.demo.tending_play import KEEPER, TEA_KEY, play_tending
from locus_memory.cli.options.session import Session
from locus_memory.cli.printing.hits import print_hits
from locus_memory.cli.printing.output import print_json
from locus_memory.cli.printing.tables import print_table
from locus_memory.cli.printing.transcripts import print_transcript
from locus_memory.inspection.items import hit_fields
from locus_memory.inspection.names import all_checkpoints
from locus_memory.inspection.sizes import measure_threads, size_on_disk
from locus_memory.inspection.text import number
from locus_memory.retrieval.hybrid import HybridSearch
from locus_memory.store.item import StoreItem

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
    for step in (_kill, _resume, _search, _look_back, _branch, _compare, _measure):
        step(stage)
    play_agent(stage)
    play_tending(stage)
    held = all(check["ok"] for check in stage.checks)
    if held:
        stage.say(f"\nAll {len(stage.checks)} checks passed. The database is {session.path}; try:")
        for command in _NEXT:
            stage.say(f"  locus-memory --url {shlex.quote(session.url)} {command}")
    else:
        stage.say("\nNOT all checks passed: see above.")
    if session.as_json:
        database = str(session.path)
        print_json({"ok": held, "database": database, **stage.found, "checks": stage.checks})
    return held


def _kill(stage: Stage) -> None:
    half = len(load_sample().messages) // 2
    stage.title("A process imports a conversation, one checkpoint per turn, and is killed half-way")
    killed = stage.found["killed"] = import_and_kill(stage.session.url, half)
    stage.say(
        f"process {killed['pid']} acknowledged {killed['acknowledged']} turns, was killed by "
        f"SIGKILL and ended with exit code {killed['exit_code']}"
    )
    left = killed["left"] = stage.session.run(partial(_survived, acknowledged=half))
    there = f"{left['checkpoints']} checkpoints and {left['items']} stored turns"
    stage.say(f"{stage.session.path} holds {there}")
    print_transcript(stage.console, [(half, left["last_acknowledged"])])
    stage.check("the process was killed and did not end by itself", ok=killed["exit_code"] != 0)
    stage.check(
        "every acknowledged turn is complete, and no other turn is partial",
        ok=left["intact"] and 0 <= left["checkpoints"] - half <= 1,
    )


def import_and_kill(url: str, after: int) -> dict[str, Any]:
    """Import in another process, and kill it while it works on the turn after `after`."""
    with Child("the importing process", "locus_memory.cli.demo.stepwise_import", url) as child:
        turns = 0
        while turns < after:
            turns = int(child.line())
            child.go_on()
        child.kill()
        return {"pid": child.pid, "exit_code": child.wait(), "acknowledged": turns}


async def _survived(backend: Backend, *, acknowledged: int) -> dict[str, Any]:
    """Return what the killed process saved."""
    messages = load_sample().messages
    state: Any = await backend.checkpointer.load(SAMPLE)
    count = len(await _ids(backend))
    keys = await backend.store.list_keys((TURNS, SAMPLE), len(messages) + 1)
    return {
        "checkpoints": count,
        "items": len(keys),
        "intact": state["messages"] == messages[:count],
        "last_acknowledged": state["messages"][:acknowledged][-1],
    }


async def _ids(backend: Backend) -> list[str]:
    return [info.checkpoint_id for info in await all_checkpoints(backend.checkpointer, SAMPLE)]


def _resume(stage: Stage) -> None:
    stage.title("A second process continues where the first one stopped")
    resumed = import_the_rest(stage.session.url)
    there = stage.session.run(_verified)
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


def import_the_rest(url: str) -> dict[str, Any]:
    """Import in a second process with the command `import`; return its summary."""
    command = ("--url", url, "import", "-", "--threads")
    summary = command_output("the second import", *command, given=sample_bytes())["threads"][0]
    return {name: summary[name] for name in ("turns", "saved", "stored")}


async def _verified(backend: Backend) -> dict[str, Any]:
    """Read every checkpoint and every turn back, and compare them with the sample."""
    messages, ids, exact = load_sample().messages, await _ids(backend), 0
    for place, checkpoint_id in enumerate(ids, 1):
        state: Any = await backend.checkpointer.load(SAMPLE, checkpoint_id)
        exact += state["messages"] == messages[:place]
    items = await backend.store.scan((TURNS, SAMPLE), len(messages) + 1)
    expected = [(turn_key(n), turn_value(m, n), 1) for n, m in enumerate(messages, 1)]
    return {
        "turns": len(messages),
        "checkpoints": len(ids),
        "in_order": ids == checkpoint_ids(messages),
        "exact": exact,
        "items_exact": [(item.key, item.value, item.version) for item in items] == expected,
    }


def _search(stage: Stage) -> None:
    stage.title("Search")
    found = stage.run("search", _answers)
    for answer in found["queries"]:
        stage.say(f"> {answer['query']}")
        items = [StoreItem.from_dict(item) for item in answer["items"]]
        print_hits(stage.console, items, answer["query"])
    stage.check(
        f"a search for the words of each of the {found['turns']} turns finds that turn first",
        ok=found["found_first"] == found["turns"],
    )


async def _answers(backend: Backend) -> dict[str, Any]:
    """Run a few queries, and a query with the words of every turn."""
    namespace, first = (TURNS, SAMPLE), 0
    hybrid = HybridSearch(backend.store, fields=hit_fields())
    answers = []
    for query in QUERIES:
        found = await hybrid.search(namespace, query, 2, mode="text")
        answers.append({"query": query, "items": [hit.item.to_dict() for hit in found]})
    items = await backend.store.scan(namespace, len(load_sample().messages))
    for item in items:
        hits = await hybrid.search(namespace, item.value["text"], 1, mode="text")
        first += bool(hits) and hits[0].item.key == item.key
    return {"queries": answers, "turns": len(items), "found_first": first}


def _look_back(stage: Stage) -> None:
    stage.title("Back in time: the end of the conversation at an earlier turn")
    messages = stage.run("past", _early_state)["messages"]
    print_transcript(stage.console, list(enumerate(messages, 1))[-2:])
    stage.check(
        "it holds exactly the messages up to that turn",
        ok=messages == load_sample().messages[:_EARLIER],
    )


async def _early_state(backend: Backend) -> dict[str, Any]:
    checkpoint_id = (await _ids(backend))[_EARLIER - 1]
    state: Any = await backend.checkpointer.load(SAMPLE, checkpoint_id)
    return {"checkpoint_id": checkpoint_id, "messages": state["messages"]}


def _branch(stage: Stage) -> None:
    stage.title(f"A fork from turn {FORK_AFTER} takes another course")
    branch = stage.run("branch", _forked)
    print_transcript(stage.console, list(enumerate(branch["messages"], 1))[FORK_AFTER - 1 :])
    expected = [*load_sample().messages[:FORK_AFTER], *BRANCH_TURNS]
    stage.check(
        "the fork holds the shared turns and its own turns", ok=branch["messages"] == expected
    )
    stage.check("the original is unchanged", ok=branch["original_intact"])


async def _forked(backend: Backend) -> dict[str, Any]:
    """Fork from an earlier turn and add other turns."""
    checkpointer, start = backend.checkpointer, (await _ids(backend))[FORK_AFTER - 1]
    await checkpointer.fork(SAMPLE, start, BRANCH)
    state: Any = await checkpointer.load(BRANCH)
    for message in BRANCH_TURNS:
        state = {**state, "messages": [*state["messages"], message]}
        await checkpointer.save(state, BRANCH)
    there: Any = await checkpointer.load(BRANCH)
    original: Any = await checkpointer.load(SAMPLE)
    return {
        "thread_id": BRANCH,
        "from": start,
        "messages": there["messages"],
        "original_intact": original["messages"] == load_sample().messages,
    }


def _compare(stage: Stage) -> None:
    stage.title("A comparison of the two branches")
    difference = stage.run("diff", partial(compare_references, a=SAMPLE, b=BRANCH))
    render_difference(stage.console, difference)
    stage.check(
        f"they share {FORK_AFTER} messages", ok=difference["messages"]["common"] == FORK_AFTER
    )


def _measure(stage: Stage) -> None:
    stage.title("The stored size, next to the full JSON of every state")
    rows, disk = stage.session.run(measure_threads), size_on_disk(stage.session.path)
    stage.found["sizes"] = {"threads": rows, "disk_bytes": disk}
    names = ("thread_id", "total_checkpoints", "stored_bytes", "json_bytes")
    cells = [[*(row[name] for name in names), f"{row['ratio']:.1%}"] for row in rows]
    titles = ["thread", ">checkpoints", ">bytes stored", ">full JSON", ">ratio"]
    print_table(stage.console, titles, cells)
    stage.say(f"on disk: {number(disk or 0)} bytes, including the searchable turns")
    small = all(row["stored_bytes"] * 10 < row["json_bytes"] for row in rows)
    stage.check("the stored size is less than a tenth of the full JSON", ok=small)
