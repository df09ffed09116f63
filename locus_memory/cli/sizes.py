"""What threads cost: bytes stored against the full JSON of every state."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
from rich.progress import Progress

from locus_memory.cli.names import all_checkpoints
from locus_memory.cli.output import console

if TYPE_CHECKING:
    from locus_memory.backends.base import Backend
    from locus_memory.checkpoint.base import BaseCheckpointer

__all__ = ["measure_thread", "measure_threads", "size_on_disk"]

_PAGE = 500


async def measure_threads(
    backend: Backend, *, thread_id: str | None = None, quiet: bool = False
) -> list[dict[str, Any]]:
    """Return what one thread costs, or every thread; nothing for one that is not there."""
    checkpointer = backend.checkpointer
    names = await _all_threads(checkpointer) if thread_id is None else [thread_id]
    return [
        await measure_thread(checkpointer, name, quiet=quiet)
        for name in names
        if await checkpointer.exists(name)
    ]


async def measure_thread(
    checkpointer: BaseCheckpointer, thread_id: str, *, quiet: bool = False
) -> dict[str, Any]:
    """Return what a thread costs; loads every state to know its JSON."""
    usage = await checkpointer.get_storage_stats(thread_id)
    json_bytes = 0
    output = console(stderr=True)
    shown = output.is_terminal and not quiet
    with Progress(console=output, transient=True, disable=not shown) as progress:
        infos = await all_checkpoints(checkpointer, thread_id)
        for info in progress.track(infos, description=f"reading {thread_id}"):
            state = await checkpointer.load(thread_id, info.checkpoint_id)
            json_bytes += len(orjson.dumps(state))
    return {
        "thread_id": thread_id,
        "total_checkpoints": usage["total_checkpoints"],
        "full_checkpoints": usage["full_checkpoints"],
        "delta_checkpoints": usage["delta_checkpoints"],
        "stored_bytes": usage["compressed_size"],
        "json_bytes": json_bytes,
        "ratio": usage["compressed_size"] / json_bytes if json_bytes else 0.0,
    }


async def _all_threads(checkpointer: BaseCheckpointer) -> list[str]:
    found: list[str] = []
    while page := await checkpointer.list_threads(_PAGE, after=found[-1] if found else None):
        found += page
    return found


def size_on_disk(path: Path | None) -> int | None:
    """Return the bytes of a database file, its write-ahead log included, or of a folder."""
    if path is None:
        return None
    if path.is_dir():
        return sum(each.stat().st_size for each in path.rglob("*") if each.is_file())
    files = [path, path.with_name(path.name + "-wal")]
    return sum(each.stat().st_size for each in files if each.is_file())
