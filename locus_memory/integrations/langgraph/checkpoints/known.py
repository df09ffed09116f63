"""What the saver knows of the last checkpoint of each namespace, so that little is stored twice.

LangGraph saves the whole state at each step. No object of the graph is cached, so one that was
changed in place counts as another.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from langgraph.checkpoint.serde.base import SerializerProtocol

from locus_memory.integrations.langgraph.checkpoints.messages import told_apart
from locus_memory.integrations.langgraph.checkpoints.serializer import StrictSerializer
from locus_memory.integrations.langgraph.checkpoints.values import Tree, encode_value

__all__ = ["Known", "Typed", "encode_channels"]

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
