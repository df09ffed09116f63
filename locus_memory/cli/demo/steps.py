"""The steps of the demo; each returns data that it read back from the database."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

from locus_memory.cli.commands.threads.diff import compare_references
from locus_memory.cli.conversations.importer import TURNS, checkpoint_ids, turn_key, turn_value
from locus_memory.cli.demo.processes import started
from locus_memory.cli.demo.sample import (
    BRANCH,
    BRANCH_TURNS,
    FORK_AFTER,
    QUERIES,
    SAMPLE,
    load_sample,
    sample_bytes,
)
from locus_memory.inspection.errors import CommandError
from locus_memory.inspection.items import hit_fields
from locus_memory.inspection.names import all_checkpoints
from locus_memory.inspection.sizes import measure_threads

if TYPE_CHECKING:
    from locus_memory.backends.base import Backend

__all__ = [
    "branch",
    "compare",
    "import_and_kill",
    "import_the_rest",
    "look_back",
    "measure",
    "search",
    "survived",
    "verify",
]

_EARLIER = 10


def import_and_kill(url: str, after: int) -> dict[str, Any]:
    """Import in another process, and kill it while it works on the turn after `after`."""
    with started(
        "locus_memory.cli.demo.stepwise_import", url, name="the importing process"
    ) as child:
        turns = 0
        while turns < after:
            turns = int(child.line())
            child.go_on()
        return {"pid": child.pid, "exit_code": child.kill(), "acknowledged": turns}


def import_the_rest(url: str) -> dict[str, Any]:
    """Import in a second process with the command `import`; return its summary."""
    done = subprocess.run(  # noqa: S603 - a module of this package
        [
            sys.executable,
            "-m",
            "locus_memory.cli",
            "--url",
            url,
            "--json",
            "import",
            "-",
            "--threads",
        ],
        input=sample_bytes(),
        stdout=subprocess.PIPE,
        check=False,
    )
    if done.returncode:
        raise CommandError(f"the second import failed with exit code {done.returncode}")
    summary: dict[str, Any] = json.loads(done.stdout)["threads"][0]
    return {name: summary[name] for name in ("turns", "saved", "stored")}


async def survived(backend: Backend, *, acknowledged: int) -> dict[str, Any]:
    """Return what the killed process saved."""
    messages = load_sample().messages
    state: Any = await backend.checkpointer.load(SAMPLE)
    ids = [info.checkpoint_id for info in await all_checkpoints(backend.checkpointer, SAMPLE)]
    keys = await backend.store.list_keys((TURNS, SAMPLE), len(messages) + 1)
    return {
        "checkpoints": len(ids),
        "items": len(keys),
        "intact": state["messages"] == messages[: len(ids)],
        "last_acknowledged": state["messages"][:acknowledged][-1],
    }


async def verify(backend: Backend) -> dict[str, Any]:
    """Read every checkpoint and every turn back, and compare them with the sample."""
    messages = load_sample().messages
    ids = [info.checkpoint_id for info in await all_checkpoints(backend.checkpointer, SAMPLE)]
    exact = 0
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


async def search(backend: Backend) -> dict[str, Any]:
    """Run a few queries, and a query with the words of every turn."""
    from locus_memory.retrieval.hybrid import HybridSearch  # noqa: PLC0415 - help must be quick

    namespace = (TURNS, SAMPLE)
    hybrid = HybridSearch(backend.store, fields=hit_fields())
    answers = []
    for query in QUERIES:
        found = await hybrid.search(namespace, query, 2, mode="text")
        answers.append({"query": query, "items": [hit.item.to_dict() for hit in found]})
    first = 0
    items = await backend.store.scan(namespace, len(load_sample().messages))
    for item in items:
        hits = await hybrid.search(namespace, item.value["text"], 1, mode="text")
        first += bool(hits) and hits[0].item.key == item.key
    return {"queries": answers, "turns": len(items), "found_first": first}


async def look_back(backend: Backend) -> dict[str, Any]:
    """Load an early state of the thread."""
    ids = [info.checkpoint_id for info in await all_checkpoints(backend.checkpointer, SAMPLE)]
    state: Any = await backend.checkpointer.load(SAMPLE, ids[_EARLIER - 1])
    return {"checkpoint_id": ids[_EARLIER - 1], "messages": state["messages"]}


async def branch(backend: Backend) -> dict[str, Any]:
    """Fork from an earlier turn and add other turns."""
    checkpointer = backend.checkpointer
    ids = [info.checkpoint_id for info in await all_checkpoints(checkpointer, SAMPLE)]
    start = ids[FORK_AFTER - 1]
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


async def compare(backend: Backend) -> dict[str, Any]:
    """Return the difference between the two branches."""
    return await compare_references(backend, a=SAMPLE, b=BRANCH)


async def measure(backend: Backend) -> list[dict[str, Any]]:
    """Return the stored size of the two threads and the size of their full JSON."""
    return await measure_threads(backend)
