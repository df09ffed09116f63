"""The record of a LangGraph checkpoint: its document and the metadata beside it. Pure.

The document is plain JSON:

- `id` and `parent`: LangGraph's ids; `parent` is missing for the first.
- `checkpoint`: what LangGraph says of it, its channels' values apart.
- `values`: each channel's value, as `langgraph_values` writes it.
- `before`: the writes that led from the parent here, if they came together with it.
- `metadata`: all of it, if not all can stand beside the document.

The metadata is LangGraph's, and under `~` what has to be known without the document.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypedDict, cast

from langgraph.checkpoint.base import Checkpoint, CheckpointMetadata
from langgraph.checkpoint.serde.base import SerializerProtocol

from locus_memory.checkpoint.base import CheckpointInfo
from locus_memory.errors import CheckpointCorruptError, ValueNotSerializableError
from locus_memory.integrations.langgraph_values import decode_value, encode_value
from locus_memory.store.item import encode_json

__all__ = [
    "COUNTERS",
    "Head",
    "TaskWrites",
    "checkpoint_of",
    "digest_of",
    "document_of",
    "metadata_beside",
    "metadata_of",
]

COUNTERS: Final = "counters_since_delta_snapshot"
"""LangGraph's metadata key: the delta channels that a checkpoint holds no value of."""

_OURS: Final = "~"

_SHORT = {"channel_versions": "versions", "versions_seen": "seen", "updated_channels": "updated"}
_LONG = {short: name for name, short in _SHORT.items()}


class TaskWrites(TypedDict):
    """What one task wrote, or one call's part of it.

    Attributes:
        task: LangGraph's task id.
        path: The task's path, which orders the writes of a step.
        writes: By their index as text: the channel, and the value as `langgraph_values` has it.
    """

    task: str
    path: str
    writes: dict[str, list[Any]]


@dataclass(frozen=True, slots=True)
class Head:
    """What is known of a checkpoint without its document.

    Attributes:
        checkpoint_id: LangGraph's.
        metadata: LangGraph's metadata, as far as it is plain JSON.
        whole: Whether that is all of it.
        low: Whether a greater id was there already when it was saved.
        carries: The digest of its parent, if its document holds writes of that.
        parent: The parent's id, or `""` for none; `None`: only the document says.
        held: Delta channels it has a value of although they are counted as going without.
    """

    checkpoint_id: str
    metadata: dict[str, Any]
    whole: bool
    low: bool
    carries: str | None
    parent: str | None
    held: frozenset[str]

    @classmethod
    def of(cls, info: CheckpointInfo) -> Head:
        """Return the head of a record."""
        metadata = dict(info.metadata)
        ours = metadata.pop(_OURS, None) or {}
        return cls(
            checkpoint_id=info.checkpoint_id,
            metadata=metadata,
            whole="part" not in ours,
            low="low" in ours,
            carries=ours.get("of"),
            parent=ours.get("parent"),
            held=frozenset(ours.get("held", ())),
        )

    def lacks(self, channel: str) -> bool:
        """Whether the checkpoint surely has no value of a channel."""
        counters: Mapping[str, Any] = self.metadata.get(COUNTERS) or {}
        return self.parent is not None and channel in counters and channel not in self.held


def digest_of(checkpoint_id: str) -> str:
    """Return a few characters that nearly always tell one checkpoint id from another."""
    return f"{zlib.crc32(checkpoint_id.encode()):08x}"


def document_of(
    serde: SerializerProtocol,
    checkpoint: Checkpoint,
    metadata: Mapping[str, Any],
    parent: str | None,
    values: Mapping[str, Any],
    before: Sequence[TaskWrites],
) -> dict[str, Any]:
    """Return the document of a checkpoint."""
    document: dict[str, Any] = {
        "id": checkpoint["id"],
        "checkpoint": _described(serde, checkpoint),
        "values": values,
    }
    if parent:
        document["parent"] = parent
    if before:
        document["before"] = before
    if len(_plain(metadata)) < len(metadata):
        document["metadata"] = encode_value(serde, metadata)
    return document


def _described(serde: SerializerProtocol, checkpoint: Checkpoint) -> Any:
    """Return what is said of a checkpoint: an object if it is plain JSON, else encoded."""
    taken = ("id", "channel_values")
    rest = {name: value for name, value in checkpoint.items() if name not in taken}
    short = {_SHORT.get(name, name): value for name, value in rest.items()}
    try:
        encode_json(short)
    except ValueNotSerializableError:
        return encode_value(serde, rest)
    return short if rest.keys().isdisjoint(_LONG) else encode_value(serde, rest)


def checkpoint_of(serde: SerializerProtocol, document: dict[str, Any]) -> Checkpoint:
    """Return the checkpoint of a document, all but its channels' values."""
    try:
        described = document["checkpoint"]
        if isinstance(described, dict):
            named = cast("dict[str, Any]", described)
            rest = {_LONG.get(name, name): value for name, value in named.items()}
        else:
            rest = decode_value(serde, described)
        return cast("Checkpoint", {**rest, "id": document["id"], "channel_values": {}})
    except KeyError as error:
        raise CheckpointCorruptError("", document.get("id"), f"it has no {error}") from error


def metadata_beside(
    metadata: Mapping[str, Any], document: Mapping[str, Any], *, low: bool
) -> dict[str, Any]:
    """Return what stands beside a document of `document_of`.

    Args:
        metadata: LangGraph's.
        document: The document.
        low: Whether there is a greater id already.
    """
    beside = _plain(metadata)
    ours: dict[str, Any] = {}
    if "metadata" in document:
        ours["part"] = 1
    if low:
        ours["low"] = 1
    if "before" in document:
        ours["of"] = digest_of(document["parent"])
    counters: Mapping[str, Any] | None = beside.get(COUNTERS)
    if counters:
        ours["parent"] = document.get("parent", "")
        held = [channel for channel in counters if channel in document["values"]]
        if held:
            ours["held"] = held
    if ours:
        beside[_OURS] = ours
    return beside


def _plain(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return the metadata that is plain JSON, where a tuple counts as a list."""
    listed = {key: _listed(value) for key, value in metadata.items() if key != _OURS}
    try:
        encode_json(listed)
    except ValueNotSerializableError:
        return {key: value for key, value in listed.items() if _is_plain({key: value})}
    return listed


def _is_plain(item: Any) -> bool:
    try:
        encode_json(item)
    except ValueNotSerializableError:
        return False
    return True


def _listed(value: Any) -> Any:
    if type(value) is dict:
        return {key: _listed(child) for key, child in cast("dict[Any, Any]", value).items()}
    if type(value) in (tuple, list):
        return [_listed(child) for child in cast("list[Any]", value)]
    return value


def metadata_of(
    serde: SerializerProtocol, head: Head, document: Mapping[str, Any]
) -> CheckpointMetadata:
    """Return all of a checkpoint's metadata."""
    if head.whole or "metadata" not in document:
        return cast("CheckpointMetadata", head.metadata)
    return cast("CheckpointMetadata", decode_value(serde, document["metadata"]))
