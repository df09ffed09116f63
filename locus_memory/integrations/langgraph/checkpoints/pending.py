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
from typing import Any, Final

from langgraph.checkpoint.base import WRITES_IDX_MAP, PendingWrite, writes_sort_key
from langgraph.checkpoint.serde.base import SerializerProtocol

from locus_memory.integrations.langgraph.checkpoints.records import TaskWrites
from locus_memory.integrations.langgraph.checkpoints.values import decode_value, encode_value

__all__ = ["PATIENCE", "WaitingRoom", "encode_writes", "indexes_of", "is_special", "merged"]

PATIENCE: Final = 0.005
"""Seconds that writes wait for the checkpoint after them."""


class _Waiting:
    """Waiting writes, and a future: whether a checkpoint has stored them."""

    def __init__(self, writes: TaskWrites) -> None:
        self.writes = writes
        self.carried: asyncio.Future[bool] = asyncio.get_running_loop().create_future()


_Key = tuple[int, str, str]


class WaitingRoom:
    """The waiting writes, separate for each event loop."""

    def __init__(self) -> None:
        self._waiting: dict[_Key, list[_Waiting]] = {}
        self._saving: Counter[tuple[int, str]] = Counter()

    async def wait(self, name: str, checkpoint_id: str, writes: TaskWrites) -> bool:
        """Wait for the next checkpoint; return whether it is stored and holds the writes."""
        loop = asyncio.get_running_loop()
        key, waiting = (id(loop), name, checkpoint_id), _Waiting(writes)
        self._waiting.setdefault(key, []).append(waiting)
        loop.call_later(PATIENCE, self._give_up, key, waiting)
        try:
            return await waiting.carried
        finally:
            self._leave(key, waiting)

    @contextmanager
    def saving(self, name: str) -> Generator[None]:
        """Let writes wait while a checkpoint is saved: the next one often follows soon."""
        key = (id(asyncio.get_running_loop()), name)
        self._saving[key] += 1
        try:
            yield
        finally:
            self._saving[key] -= 1
            if not self._saving[key]:
                del self._saving[key]

    def take(self, name: str, checkpoint_id: str) -> list[_Waiting]:
        """Return the writes that wait for a child of a checkpoint; see `tell`."""
        key = (id(asyncio.get_running_loop()), name, checkpoint_id)
        return self._waiting.pop(key, [])

    @staticmethod
    def tell(taken: Iterable[_Waiting], *, carried: bool) -> None:
        """Report whether the taken writes are stored."""
        for waiting in taken:
            if not waiting.carried.done():
                waiting.carried.set_result(carried)

    def _give_up(self, key: _Key, waiting: _Waiting) -> None:
        if waiting not in self._waiting.get(key, ()):
            return
        if self._saving[key[:2]]:
            loop = asyncio.get_running_loop()
            loop.call_later(PATIENCE, self._give_up, key, waiting)
            return
        self._leave(key, waiting)
        self.tell([waiting], carried=False)

    def _leave(self, key: _Key, waiting: _Waiting) -> None:
        others = self._waiting.get(key, [])
        if waiting in others:
            others.remove(waiting)
            if not others:
                del self._waiting[key]


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


def indexes_of(records: Iterable[TaskWrites]) -> dict[str, set[str]]:
    """Return the indexes of the writes of each task."""
    indexes: dict[str, set[str]] = {}
    for record in records:
        indexes.setdefault(record.task, set()).update(record.writes)
    return indexes


def merged(
    serde: SerializerProtocol, records: Iterable[TaskWrites], channel: str | None = None
) -> list[PendingWrite]:
    """Return pending writes in LangGraph's order.

    Args:
        serde: Converts bytes to values.
        records: The writes in the order in which they were stored.
        channel: Only writes to this channel; `None`: to all.
    """
    found: dict[tuple[str, str, int], Sequence[Any]] = {}
    paths: dict[tuple[str, str], str] = {}
    for record in records:
        _merge(found, paths, record)
    return [
        (task, write[0], decode_value(serde, write[1]))
        for (_, task, _), write in sorted(found.items(), key=lambda item: item[0])
        if channel is None or write[0] == channel
    ]


def _merge(
    found: dict[tuple[str, str, int], Sequence[Any]],
    paths: dict[tuple[str, str], str],
    record: TaskWrites,
) -> None:
    task, path, writes = record
    for index, write in writes.items():
        first = paths.get((task, index))
        if first is not None and not is_special(index):
            continue
        if first is not None:
            del found[writes_sort_key(first, task, int(index))]
        paths[task, index] = path
        found[writes_sort_key(path, task, int(index))] = write
