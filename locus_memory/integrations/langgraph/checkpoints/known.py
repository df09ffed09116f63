"""What the saver knows of the last checkpoint of each namespace, so that little is stored twice.

LangGraph saves the whole state at each step. No object of the graph is cached, so one that was
changed in place counts as another. The index of a place is what its checkpoints and its writes tell
without their documents.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, TypeAlias, TypeVar

from langgraph.checkpoint.serde.base import SerializerProtocol

from locus_memory.checkpoint.base import CheckpointInfo
from locus_memory.integrations.langgraph.checkpoints.messages import told_apart
from locus_memory.integrations.langgraph.checkpoints.records import Head, digest_of
from locus_memory.integrations.langgraph.checkpoints.serializer import StrictSerializer
from locus_memory.integrations.langgraph.checkpoints.values import Tree, encode_value
from locus_memory.integrations.langgraph.threads import WINDOW, Place

__all__ = ["Index", "Known", "Lineage", "Typed", "encode_channels"]

_LEAST: Final = 64 * 1024
"""The weight of a small one, so that their number is bounded as well."""

Typed: TypeAlias = Mapping[tuple[Any, ...], tuple[str, bytes]]
"""The typed bytes of values, by channel, place in it, type and content."""


@dataclass(frozen=True, slots=True)
class Known:
    """A checkpoint that was saved or loaded here.

    Attributes:
        checkpoint_id: LangGraph's id; empty if only `greatest` is known.
        greatest: The greatest checkpoint id in the namespace; empty: there is none; `None`:
            unknown.
        is_delta: Whether the graph has delta channels, so that its saves wait for writes.
        numbers: The numbers of the bytes in its document.
        typed: The bytes of another serializer than the library's, which may differ each time.
    """

    checkpoint_id: str
    greatest: str | None
    is_delta: bool = False
    numbers: Mapping[bytes, int] = field(default_factory=dict[bytes, int])
    typed: Typed = field(default_factory=dict[tuple[Any, ...], tuple[str, bytes]])

    @property
    def weight(self) -> int:
        """About how many bytes all this takes."""
        held = sum(map(len, self.numbers)) + 128 * len(self.numbers)
        return max(_LEAST, held + sum(len(key[-1]) + 512 for key in self.typed))


class _Recalling:
    """A serializer that returns the same bytes as before for the same content at the same place."""

    def __init__(self, serde: SerializerProtocol, known: Typed) -> None:
        self._serde = serde
        self._known = known
        self.made: dict[tuple[Any, ...], tuple[str, bytes]] = {}
        self.channel, self.place = "", 0

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        self.place += 1
        content = told_apart(obj)
        if content is None:
            return self._serde.dumps_typed(obj)
        key = self.channel, self.place, type(obj), content
        self.made[key] = self._known.get(key) or self._serde.dumps_typed(obj)
        return self.made[key]

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        return self._serde.loads_typed(data)


def encode_channels(
    serde: SerializerProtocol, channels: Mapping[str, Any], known: Typed
) -> tuple[dict[str, Tree], Typed]:
    """Return the tree of each channel's value, and the typed bytes that have to stay the same.

    Args:
        serde: Converts values to bytes.
        channels: The values.
        known: The typed bytes in the last checkpoint.
    """
    if isinstance(serde, StrictSerializer):
        return {name: encode_value(serde, value) for name, value in channels.items()}, {}
    recalling, trees = _Recalling(serde, known), dict[str, Tree]()
    for recalling.channel, value in channels.items():
        recalling.place = 0
        trees[recalling.channel] = encode_value(recalling, value)
    return trees, recalling.made


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
