"""The index of a place, and the cached trail from which delta channels are rebuilt.

A delta channel is rebuilt from its last snapshot and all writes since. Neither changes after the
next checkpoint exists: so the trail is cached, and the newest records show whether it is still the
stored one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, NamedTuple

from locus_memory.checkpoint.base import CheckpointInfo
from locus_memory.integrations.langgraph.checkpoints.records import (
    Document,
    Head,
    TaskWrites,
    digest_of,
    parent_of,
)
from locus_memory.integrations.langgraph.checkpoints.values import Tree
from locus_memory.integrations.langgraph.threads import WINDOW, Place

__all__ = ["Index", "Lineage", "Past", "Trail", "Written"]

_RECORD = 1024

_UNLISTED = 64
"""How many records are cached before a listing has them."""


@dataclass(frozen=True, slots=True)
class Index:
    """The index of a place, or of its newest part.

    Attributes:
        place: The place.
        heads: The checkpoints by id, newest first.
        written: The records of separate writes, newest first, with their checkpoints.
        alone: By checkpoint id, those records, oldest first.
        whole: Whether the index is complete.
        greatest: The greatest checkpoint id seen, here or in a part left out.
    """

    place: Place
    heads: dict[str, Head]
    written: dict[str, str]
    alone: dict[str, list[str]]
    whole: bool
    greatest: str

    @classmethod
    def of(
        cls,
        place: Place,
        infos: Iterable[CheckpointInfo],
        writes: Iterable[CheckpointInfo],
        *,
        whole: bool = False,
    ) -> Index:
        """Return the index of listed records, newest first."""
        heads = {info.checkpoint_id: Head.of(info) for info in infos}
        written = {info.checkpoint_id: str(info.metadata.get("of")) for info in writes}
        return cls._joined(place, heads, written, whole=whole)

    @classmethod
    def _joined(
        cls,
        place: Place,
        heads: dict[str, Head],
        written: dict[str, str],
        *,
        whole: bool = False,
        greatest: str = "",
    ) -> Index:
        alone: dict[str, list[str]] = {}
        for name in reversed(written):
            alone.setdefault(written[name], []).append(name)
        return cls(place, heads, written, alone, whole, max(greatest, *heads, ""))

    def carriers(self, checkpoint_ids: Collection[str]) -> list[str]:
        """Return, oldest first, the checkpoints that may carry writes of these."""
        digests = set(map(digest_of, checkpoint_ids))
        return [name for name, head in self.heads.items() if head.carries in digests][::-1]

    def onto(self, older: Index) -> Index | None:
        """Return this index of the newest records with older ones added.

        Returns:
            `None` if it is not certain that the older records still follow.
        """
        heads = _spliced(_saved(self.heads), _saved(older.heads))
        is_all = len(self.written) < WINDOW
        written = self.written if is_all else _spliced(self.written, older.written)
        if heads is None or written is None:
            return None
        # A checkpoint that was left out, with its writes, may have been saved again.
        if any(name not in older.heads and name <= older.greatest for name in heads):
            return None
        return self._joined(
            self.place,
            {name: self.heads.get(name) or older.heads[name] for name in heads},
            written,
            greatest=older.greatest,
        )

    def back_to(self, checkpoint_ids: Collection[str]) -> Index:
        """Return the part from the newest checkpoint to the last of these.

        It includes the records that hold writes of a checkpoint in that part.
        """
        length, needed = 0, set(checkpoint_ids)
        while needed:
            places = (place for place, name in enumerate(self.heads, 1) if name in needed)
            length = max(places, default=length)
            kept = list(islice(self.heads, length))
            needed = set(self.carriers(kept)).difference(kept)
        dropped = set(islice(self.heads, length, None))
        return self._joined(
            self.place,
            dict(islice(self.heads.items(), length)),
            {name: of for name, of in self.written.items() if of not in dropped},
            whole=self.whole and not dropped,
            greatest=self.greatest,
        )


def _saved(heads: Mapping[str, Head]) -> dict[str, Any]:
    return {name: head.saved for name, head in heads.items()}


def _spliced(newest: dict[str, Any], older: dict[str, Any]) -> dict[str, Any] | None:
    """Return a window of new records joined with the known ones, if both agree."""
    listed, known = list(newest.items()), list(older.items())
    fresh = next((i for i, record in enumerate(listed) if record[0] in older), len(listed))
    common = listed[fresh:]
    start = known.index(common[0]) if common and common[0] in known else len(known)
    behind = known[start : start + len(common)]
    if not behind or behind != common[: len(behind)]:
        return None
    # A short window is complete.
    end = start + len(behind) if len(listed) < WINDOW else None
    new = dict(listed[:fresh])
    return new | {name: value for name, value in known[start:end] if name not in new}


@dataclass(slots=True)
class Lineage:
    """The ancestors that delta channels are rebuilt from.

    Attributes:
        ancestors: Their ids, nearest first.
        seeds: The encoded value that each channel starts from, if there is one.
        depths: How many of the ancestors each channel needs.
        cut: Whether an ancestor was not in the index.
    """

    ancestors: list[str] = field(default_factory=list[str])
    seeds: dict[str, Any] = field(default_factory=dict[str, Any])
    depths: dict[str, int] = field(default_factory=dict[str, int])
    cut: bool = False


class Past(NamedTuple):
    """The data read of a checkpoint.

    Attributes:
        parent: The parent's id.
        channels: The channels it has values of.
        values: The encoded values of the requested channels.
    """

    parent: str | None
    channels: frozenset[str]
    values: dict[str, Any]

    @classmethod
    def of(cls, document: Document, wanted: Collection[str]) -> Past:
        """Return the data of an opened document on the requested channels."""
        values = document["v"]
        return cls(
            parent_of(document),
            frozenset(values),
            {channel: values[channel] for channel in values if channel in wanted},
        )


class Written(NamedTuple):
    """The data read of a record of writes.

    Attributes:
        of: The checkpoint of the writes.
        writes: The writes.
    """

    of: str | None
    writes: Sequence[TaskWrites]


@dataclass(frozen=True, slots=True, eq=False)
class Trail:
    """A part of an index, and the data read of its records.

    Attributes:
        index: From the newest checkpoint back to the last that was needed.
        past: By checkpoint id, the data read of it.
        records: By the id of a record, the writes in it.
    """

    index: Index
    past: dict[str, Past] = field(default_factory=dict[str, Past])
    records: dict[str, Written] = field(default_factory=dict[str, Written])

    @property
    def weight(self) -> int:
        """About how many bytes this takes."""
        heads = _RECORD * (len(self.index.heads) + len(self.index.written))
        writes = (record for found in self.records.values() for record in found.writes)
        values = (value for record in writes for _, value in record.writes.values())
        seeds = (value for past in self.past.values() for value in past.values.values())
        return heads + sum(map(_size, values)) + sum(map(_size, seeds))

    def on(self, index: Index) -> Trail:
        """Return the trail of a newer index, with the data of this one that is still valid."""
        there = _saved(index.heads).items() & _saved(self.index.heads).items()
        names = {name for name, _ in there}.union(index.written)
        # Another writer may be adding to the shared data.
        records = self.records.copy()
        return Trail(
            index,
            {name: past for name, past in self.past.items() if name in names},
            {name: record for name, record in records.items() if name in names},
        )

    def wrote(self, record_id: str, written: Written) -> None:
        """Add separate writes that were just stored."""
        if len(self.records) < len(self.index.heads) + len(self.index.written) + _UNLISTED:
            self.records[record_id] = written


def _size(tree: Tree) -> int:
    """Return about how many bytes a tree takes."""
    if isinstance(tree, dict | list):
        parts: Iterable[Any] = tree.values() if isinstance(tree, dict) else tree
        return sum(_size(part) for part in parts)
    return _RECORD // 4 + (len(tree) if isinstance(tree, bytes | str) else 0)
