"""Pending writes: the writes of the tasks of a step, before the next checkpoint includes them.

Separate writes take a record. But the checkpoint after them is usually saved a moment later, before
a caller learns that the writes are stored. So they wait for that moment, and then one record holds
both. Writes without such a checkpoint, or writes that cannot wait, get their own record.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

from langgraph.checkpoint.base import WRITES_IDX_MAP, PendingWrite, writes_sort_key
from langgraph.checkpoint.serde.base import SerializerProtocol

from locus_memory.integrations.langgraph.checkpoints.records import TaskWrites
from locus_memory.integrations.langgraph.checkpoints.values import decode_value, encode_value

__all__ = ["PATIENCE", "Waiting", "WaitingRoom", "encode_writes", "is_special", "merged"]

PATIENCE: Final = 0.005
"""Seconds that writes wait for the checkpoint after them."""


class Waiting(NamedTuple):
    """Waiting writes, and a future: whether a checkpoint has stored them."""

    writes: TaskWrites
    carried: asyncio.Future[bool]


class WaitingRoom:
    """The waiting writes, separate for each event loop."""

    def __init__(self) -> None:
        self._waiting: dict[tuple[int, str, str], list[Waiting]] = {}
        self._saving: Counter[tuple[int, str]] = Counter()

    async def wait(self, name: str, checkpoint_id: str, writes: TaskWrites) -> bool:
        """Wait for the next checkpoint; return whether it is stored and holds the writes."""
        loop = asyncio.get_running_loop()
        key, waiting = (id(loop), name, checkpoint_id), Waiting(writes, loop.create_future())
        self._waiting.setdefault(key, []).append(waiting)
        try:
            # While another checkpoint is saved, the next one often follows soon.
            while not (await asyncio.wait([waiting.carried], timeout=PATIENCE))[0]:
                if not self._saving[key[:2]]:
                    return False
            return waiting.carried.result()
        finally:
            others = self._waiting.get(key, [])
            if waiting in others:
                others.remove(waiting)
            if not others:
                self._waiting.pop(key, None)

    @contextmanager
    def saving(self, name: str) -> Generator[list[Waiting]]:
        """Let writes wait while a checkpoint is saved, which stores those in the list."""
        key = id(asyncio.get_running_loop()), name
        self._saving[key] += 1
        taken: list[Waiting] = []
        stored = False
        try:
            yield taken
            stored = True
        finally:
            self._saving[key] -= 1
            if not self._saving[key]:
                del self._saving[key]
            for waiting in taken:
                if not waiting.carried.done():
                    waiting.carried.set_result(stored)

    def take(self, name: str, checkpoint_id: str | None) -> list[Waiting]:
        """Return the writes that wait for a child of a checkpoint; see `saving`.

        Args:
            name: The place.
            checkpoint_id: The checkpoint; `None`: the child has no parent, and holds no writes.
        """
        key = id(asyncio.get_running_loop()), name, checkpoint_id or ""
        return self._waiting.pop(key, []) if checkpoint_id else []


def encode_writes(
    serde: SerializerProtocol, writes: Sequence[tuple[str, Any]], task_id: str, path: str
) -> TaskWrites:
    """Return writes as trees, each under LangGraph's index."""
    encoded = {
        str(WRITES_IDX_MAP.get(channel, index)): [channel, encode_value(serde, value)]
        for index, (channel, value) in enumerate(writes)
    }
    return TaskWrites(task_id, path, encoded)


def is_special(index: str) -> bool:
    """Whether a write replaces the earlier one; of other writes, the first stays."""
    return index.startswith("-")


def merged(
    serde: SerializerProtocol, records: Iterable[TaskWrites], channel: str | None = None
) -> list[PendingWrite]:
    """Return pending writes in LangGraph's order.

    Args:
        serde: Converts bytes to values.
        records: The writes in the order in which they were stored.
        channel: Only writes to this channel; `None`: to all.
    """
    found: dict[tuple[str, str], tuple[str, Sequence[Any]]] = {}
    for task, path, writes in records:
        for index, write in writes.items():
            if (task, index) not in found or is_special(index):
                found[task, index] = path, write
    ordered = sorted(
        (writes_sort_key(path, task, int(index)), write)
        for (task, index), (path, write) in found.items()
        if channel is None or write[0] == channel
    )
    return [(key[1], of, decode_value(serde, value)) for key, (of, value) in ordered]
