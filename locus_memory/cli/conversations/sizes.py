"""The size of threads: stored bytes, and the full JSON of every state for comparison."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from locus_memory.cli.options.names import all_checkpoints, find_thread
from locus_memory.cli.printing.progress import shown_progress

if TYPE_CHECKING:
    from locus_memory.backends.base import Backend
    from locus_memory.checkpoint.base import BaseCheckpointer

__all__ = [
    "Step",
    "all_threads",
    "describe_size",
    "measure_growth",
    "measure_thread",
    "measure_threads",
    "size_on_disk",
]

_PAGE = 500


async def measure_threads(
    backend: Backend, *, thread: str | None = None, deep: bool = True, quiet: bool = False
) -> list[dict[str, Any]]:
    """Return the sizes of one thread or of all threads; an unknown thread gives no row."""
    checkpointer = backend.checkpointer
    if thread is None:
        names = await all_threads(checkpointer)
    else:
        names = [await find_thread(checkpointer, thread)]
    return [
        await measure_thread(checkpointer, name, deep=deep, quiet=quiet)
        for name in names
        if await checkpointer.exists(name)
    ]


async def measure_thread(
    checkpointer: BaseCheckpointer, thread_id: str, *, deep: bool = True, quiet: bool = False
) -> dict[str, Any]:
    """Return the size of a thread.

    Args:
        checkpointer: The checkpointer of the thread.
        thread_id: The thread.
        deep: Whether to load every state and measure its JSON.
        quiet: Whether to hide the progress bar.
    """
    growth = await measure_growth(checkpointer, thread_id, quiet=quiet) if deep else None
    return await describe_size(checkpointer, thread_id, growth)


async def describe_size(
    checkpointer: BaseCheckpointer, thread_id: str, growth: list[Step] | None
) -> dict[str, Any]:
    """Return the size of a thread, as JSON.

    Args:
        checkpointer: The checkpointer of the thread.
        thread_id: The thread.
        growth: What `measure_growth` returned; `None`: the size of the JSON is not known.
    """
    usage = await checkpointer.get_storage_stats(thread_id)
    json_bytes = None if growth is None else sum(each.json_bytes for each in growth)
    return {
        "thread_id": thread_id,
        "total_checkpoints": usage["total_checkpoints"],
        "full_checkpoints": usage["full_checkpoints"],
        "delta_checkpoints": usage["delta_checkpoints"],
        "stored_bytes": usage["compressed_size"],
        "json_bytes": json_bytes,
        "ratio": usage["compressed_size"] / json_bytes if json_bytes else None,
    }


@dataclass(frozen=True, slots=True)
class Step:
    """What one checkpoint adds to a thread.

    Attributes:
        stored_bytes: The size of its record.
        json_bytes: The size of the JSON of its state.
    """

    stored_bytes: int
    json_bytes: int


async def measure_growth(
    checkpointer: BaseCheckpointer, thread_id: str, *, quiet: bool = False
) -> list[Step]:
    """Return what each checkpoint of a thread adds, the oldest first; every state is loaded."""
    steps: list[Step] = []
    with shown_progress(quiet=quiet) as progress:
        infos = await all_checkpoints(checkpointer, thread_id)
        for info in progress.track(infos, description=f"reading {thread_id}"):
            state = await checkpointer.load(thread_id, info.checkpoint_id)
            steps.append(Step(info.stored_size, len(orjson.dumps(state))))
    return steps


async def all_threads(checkpointer: BaseCheckpointer) -> list[str]:
    """Return the names of all threads."""
    found: list[str] = []
    while page := await checkpointer.list_threads(_PAGE, after=found[-1] if found else None):
        found += page
    return found


def size_on_disk(path: Path | None) -> int | None:
    """Return the size in bytes of a database file and its write-ahead log, or of a folder."""
    if path is None:
        return None
    if path.is_dir():
        return sum(each.stat().st_size for each in path.rglob("*") if each.is_file())
    files = [path, path.with_name(path.name + "-wal")]
    return sum(each.stat().st_size for each in files if each.is_file())
