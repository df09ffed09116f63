"""The index of a place: what its checkpoints and its writes tell without their documents."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeVar

from locus_memory.checkpoint.base import CheckpointInfo
from locus_memory.integrations.langgraph.checkpoints.records import Head, digest_of
from locus_memory.integrations.langgraph.threads import WINDOW, Place

__all__ = ["Index", "Lineage"]

_RECORD = 1024

_Told = TypeVar("_Told")


@dataclass(frozen=True, slots=True)
class Index:
    """The index of a place, or of its newest part.

    Attributes:
        place: The place.
        heads: The checkpoints by id, newest first.
        written: The records of separate writes, newest first, with their checkpoints and the
            moments at which they were stored.
    """

    place: Place
    heads: dict[str, Head]
    written: dict[str, tuple[str, datetime]]

    @classmethod
    def of(
        cls, place: Place, infos: Iterable[CheckpointInfo], writes: Iterable[CheckpointInfo]
    ) -> Index:
        """Return the index of listed records, newest first."""
        return cls(
            place,
            {info.checkpoint_id: Head.of(info) for info in infos},
            {
                info.checkpoint_id: (str(info.metadata.get("of")), info.created_at)
                for info in writes
            },
        )

    @property
    def greatest(self) -> str:
        """The greatest checkpoint id; empty if there is none."""
        return max(self.heads, default="")

    @property
    def weight(self) -> int:
        """About how many bytes this takes."""
        return _RECORD * (8 + len(self.heads) + len(self.written))

    def alone(self, checkpoint_ids: Collection[str]) -> list[str]:
        """Return, oldest first, the records of separate writes of these checkpoints."""
        wanted = set(checkpoint_ids)
        return [name for name, (of, _) in self.written.items() if of in wanted][::-1]

    def carriers(self, checkpoint_ids: Collection[str]) -> list[Head]:
        """Return, oldest first, the checkpoints that may carry writes of these."""
        digests = set(map(digest_of, checkpoint_ids))
        return [head for head in self.heads.values() if head.carries in digests][::-1]

    def onto(self, older: Index) -> Index | None:
        """Return this index of the newest records with the older ones of a whole index added.

        Returns:
            `None` if it is not certain that the older records still follow.
        """
        heads = _spliced(self.heads, older.heads)
        written = _spliced(self.written, older.written)
        return None if heads is None or written is None else Index(self.place, heads, written)


def _spliced(newest: dict[str, _Told], older: dict[str, _Told]) -> dict[str, _Told] | None:
    """Return the newest records joined with the known ones, if both agree."""
    if len(newest) < WINDOW:
        # It is complete.
        return newest
    known, listed = list(older.items()), list(newest.items())
    common = sum(older.get(name) == told for name, told in listed)
    end = known.index(listed[-1]) + 1 if common and listed[-1] in known else 0
    if not end or known[max(0, end - common) : end] != listed[-common:]:
        return None
    return newest | {name: told for name, told in known[end:] if name not in newest}


@dataclass(slots=True)
class Lineage:
    """The ancestors that delta channels are rebuilt from.

    Attributes:
        ancestors: Their ids, nearest first.
        seeds: The encoded value that each channel starts from, if there is one.
        depths: How many of the ancestors each channel needs.
    """

    ancestors: list[str] = field(default_factory=list[str])
    seeds: dict[str, Any] = field(default_factory=dict[str, Any])
    depths: dict[str, int] = field(default_factory=dict[str, int])
