"""The size of threads: stored bytes, and the full JSON of every state for comparison."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from locus_memory.inspection.names import all_checkpoints, find_thread

if TYPE_CHECKING:
    from locus_memory.backends.base import Backend
    from locus_memory.checkpoint.base import BaseCheckpointer, CheckpointInfo

__all__ = ["Step", "Watch", "describe_size", "measure_growth", "measure_threads", "size_on_disk"]

Watch = Callable[[list["CheckpointInfo"], str], Iterable["CheckpointInfo"]]
"""Passes on the checkpoints of a thread, by its name, and shows how far they are read."""


def _unwatched(infos: list[CheckpointInfo], name: str) -> Iterable[CheckpointInfo]:
    del name
    return infos


async def measure_threads(
    backend: Backend, *, thread: str | None = None, deep: bool = True, watch: Watch = _unwatched
) -> list[dict[str, Any]]:
    """Return the sizes of one thread or of all threads; an unknown thread gives no row.

    Args:
        backend: The backend of the threads.
        thread: One thread; `None`: all.
        deep: Whether to load every state and measure its JSON.
        watch: Shows how far the states are read.
    """
    from locus_memory.transfer.reading import all_threads  # noqa: PLC0415 - help must be quick

    checkpointer, rows = backend.checkpointer, list[dict[str, Any]]()
    named = None if thread is None else await find_thread(checkpointer, thread)
    names = [named] if named else [each async for each in all_threads(checkpointer)]
    for name in names:
        if await checkpointer.exists(name):
            steps = measure_growth(checkpointer, name, watch)
            growth = [each async for each in steps] if deep else None
            rows.append(await describe_size(checkpointer, name, growth))
    return rows


async def describe_size(
    checkpointer: BaseCheckpointer, thread_id: str, growth: list[Step] | None
) -> dict[str, Any]:
    """Return the size of a thread, as JSON.

    Args:
        checkpointer: The checkpointer of the thread.
        thread_id: The thread.
        growth: All of `measure_growth`; `None`: the size of the JSON is not known.
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


@dataclass(frozen=True, slots=True, order=True)
class Step:
    """What one checkpoint adds to a thread.

    Attributes:
        at: When it was saved.
        stored_bytes: The size of its record.
        json_bytes: The size of the JSON of its state.
    """

    at: datetime
    stored_bytes: int
    json_bytes: int


async def measure_growth(
    checkpointer: BaseCheckpointer, thread_id: str, watch: Watch = _unwatched
) -> AsyncIterator[Step]:
    """Yield what each checkpoint of a thread adds, the oldest first; every state is loaded.

    Raises:
        CheckpointNotFoundError: The thread has no checkpoints, or one was deleted meanwhile.
    """
    for info in watch(await all_checkpoints(checkpointer, thread_id), thread_id):
        state = await checkpointer.load(thread_id, info.checkpoint_id)
        yield Step(info.created_at, info.stored_size, len(orjson.dumps(state)))


def size_on_disk(path: Path | None) -> int | None:
    """Return the size in bytes of a database file and its write-ahead log, or of a folder."""
    if path is None:
        return None
    if path.is_dir():
        return sum(each.stat().st_size for each in path.rglob("*") if each.is_file())
    files = [path, path.with_name(path.name + "-wal")]
    return sum(each.stat().st_size for each in files if each.is_file())
