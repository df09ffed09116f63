"""The record of a LangGraph checkpoint: its document and the metadata beside it. Pure.

The document is plain JSON. A delta of it names what changed, so the names are short:

| name | holds |
|---|---|
| `c` | LangGraph's fields of the checkpoint, without its id and its channels' values |
| `v` | each channel's value, see `values` |
| `t` | the bytes of all values, by their numbers |
| `p` | the parent's id; missing for the first |
| `b` | the writes between the parent and this checkpoint, if they were stored with it |
| `m` | all of the metadata, if not all can be stored beside the document |

Within `c`, `n` are the channels' versions, `s` the versions seen, `u` the channels updated, and
`at` is the time in microseconds since 1970. Writes are a task's id, its path, where `^` means the
usual beginning, and by index the channel and the value.

The metadata is LangGraph's. Keys that begin with `~` hold facts that are needed without the
document. A thread of separate writes has documents of `of`, the checkpoint's id, `b` and `t`.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Final, NamedTuple, cast

from langgraph.checkpoint.base import Checkpoint, CheckpointMetadata
from langgraph.checkpoint.serde.base import SerializerProtocol

from locus_memory.checkpoint.base import BaseCheckpointer, CheckpointInfo, State
from locus_memory.checkpoint.chain import DeltaCheckpointer
from locus_memory.checkpoint.states import BytesDocument, Kind, readable
from locus_memory.errors import CheckpointCorruptError, ValueNotSerializableError
from locus_memory.integrations.langgraph.checkpoints.older import tree_of
from locus_memory.integrations.langgraph.checkpoints.values import (
    Leaves,
    Tree,
    decode_value,
    encode_leaf,
    unfold,
)
from locus_memory.store.json_values import encode_json, round_trip

__all__ = [
    "COUNTERS",
    "Document",
    "Head",
    "TaskWrites",
    "alone_of",
    "before_of",
    "checkpoint_of",
    "closed",
    "digest_of",
    "document_of",
    "metadata_beside",
    "metadata_of",
    "numbers_of",
    "opened",
    "parent_of",
    "stored_by",
]

COUNTERS: Final = "counters_since_delta_snapshot"
"""LangGraph's metadata key: the delta channels that a checkpoint holds no value of."""

Document = dict[str, Any]

_OURS = "~"
_TREES = frozenset({"c", "m"})
_SHORT = {"channel_versions": "n", "versions_seen": "s", "updated_channels": "u", "ts": "at"}
_LONG = {short: name for name, short in _SHORT.items()}
_USUAL = "~__pregel_pull, "
# Nearly all metadata has it, empty: then it is left out, and `~bare` marks metadata without it.
_USUALLY_EMPTY = "parents"
_BARE = "~bare"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


class TaskWrites(NamedTuple):
    """The writes of one task, or one call's part of them.

    Attributes:
        task: LangGraph's task id.
        path: The task's path, which orders the writes of a step.
        writes: By their index as text: the channel, and the tree of the value.
    """

    task: str
    path: str
    writes: dict[str, list[Any]]


@dataclass(frozen=True, slots=True)
class Head:
    """The facts about a checkpoint that are available without its document.

    Attributes:
        info: The information on the record.
        metadata: LangGraph's metadata, as far as it is plain JSON.
        whole: Whether that is all of the metadata.
        low: Whether a greater id existed when it was saved.
        carries: The digest of its parent, if its document holds writes of the parent.
        parent: The parent's id, or `""` for none; `None`: only the document has it.
        held: Delta channels that it has a value of although they are counted as without.
    """

    info: CheckpointInfo
    metadata: dict[str, Any]
    whole: bool
    low: bool
    carries: str | None
    parent: str | None
    held: frozenset[str]

    @classmethod
    def of(cls, info: CheckpointInfo) -> Head:
        """Return the head of a record."""
        metadata = info.metadata
        ours = {key: value for key, value in metadata.items() if key.startswith(_OURS)}
        theirs = {key: value for key, value in metadata.items() if key not in ours}
        if _BARE not in ours:
            theirs.setdefault(_USUALLY_EMPTY, {})
        return cls(
            info=info,
            metadata=theirs,
            whole="~part" not in ours,
            low="~low" in ours,
            carries=ours.get("~of"),
            parent=ours.get("~parent"),
            held=frozenset(ours.get("~held", ())),
        )

    @property
    def checkpoint_id(self) -> str:
        """LangGraph's id."""
        return self.info.checkpoint_id

    @property
    def record(self) -> str:
        """A name of the record, which is another one if the id is saved again."""
        info = self.info
        return repr((info.thread_id, info.checkpoint_id, info.sequence, info.created_at))

    def lacks(self, channel: str) -> bool:
        """Whether the checkpoint certainly has no value of a channel."""
        counters: Mapping[str, Any] = self.metadata.get(COUNTERS) or {}
        return self.parent is not None and channel in counters and channel not in self.held


def digest_of(checkpoint_id: str) -> str:
    """Return a few characters that usually distinguish two checkpoint ids."""
    return f"{zlib.crc32(checkpoint_id.encode()) & 0xFFFFFF:06x}"


def document_of(
    serde: SerializerProtocol,
    checkpoint: Checkpoint,
    metadata: Mapping[str, Any],
    parent: str | None,
) -> Document:
    """Return the document of a checkpoint, its values as trees, without `v`, `t` and `b`."""
    document: Document = {"c": _described(serde, checkpoint)}
    if parent:
        document["p"] = parent
    if len(_plain(metadata)) < len(metadata):
        document["m"] = encode_leaf(serde, dict(metadata))
    return document


def _described(serde: SerializerProtocol, checkpoint: Checkpoint) -> Any:
    """Return the fields of a checkpoint: an object if they are plain JSON, else a tree."""
    taken = ("id", "channel_values")
    rest: dict[str, Any] = {name: v for name, v in checkpoint.items() if name not in taken}
    short = {_SHORT.get(name, name): value for name, value in rest.items()}
    short["at"] = _instant(short.get("at"))
    try:
        # A copy, because the graph may change its own.
        _, copied = round_trip(short)
    except ValueNotSerializableError:
        return encode_leaf(serde, rest)
    return copied if rest.keys().isdisjoint(_LONG) else encode_leaf(serde, rest)


def _instant(stamp: Any) -> Any:
    """Return a time in microseconds, if it can be restored exactly from them."""
    try:
        instant = (datetime.fromisoformat(stamp) - _EPOCH) // _MICROSECOND
    except (TypeError, ValueError, OverflowError):
        return stamp
    return instant if _stamp(instant) == stamp else stamp


def _stamp(instant: Any) -> Any:
    return (_EPOCH + instant * _MICROSECOND).isoformat() if type(instant) is int else instant


def checkpoint_of(
    serde: SerializerProtocol, checkpoint_id: str, document: Document, values: dict[str, Any]
) -> Checkpoint:
    """Return the checkpoint of a document.

    Raises:
        CheckpointCorruptError: The document is not one of a checkpoint.
    """
    if "c" not in document:
        raise CheckpointCorruptError("", checkpoint_id, "it is not a checkpoint of LangGraph")
    described = document["c"]
    if isinstance(described, dict):
        named = cast("dict[str, Any]", described)
        rest = {_LONG.get(name, name): value for name, value in named.items()}
        rest["ts"] = _stamp(rest["ts"])
    else:
        rest = decode_value(serde, described)
    return cast("Checkpoint", {**rest, "id": checkpoint_id, "channel_values": values})


def parent_of(document: Document) -> str | None:
    """Return the parent's id."""
    return document.get("p")


def before_of(document: Document) -> list[TaskWrites]:
    """Return the writes that an opened document carries."""
    records: list[TaskWrites] = document.get("b", [])
    return records


def closed(document: Document, numbers: Mapping[bytes, int]) -> tuple[Document, dict[bytes, int]]:
    """Return a document of trees and `TaskWrites` as it is stored, and the numbers of its bytes.

    Args:
        document: The document.
        numbers: The numbers in the last document of the thread.
    """
    leaves, stored = Leaves(numbers), document.copy()
    for name in _TREES & document.keys():
        if name != "c" or type(document["c"]) is not dict:
            stored[name] = leaves.fold(document[name])
    if "v" in document:
        stored["v"] = {channel: leaves.fold(tree) for channel, tree in document["v"].items()}
    if "b" in document:
        stored["b"] = [_written(record, leaves) for record in document["b"]]
    stored[BytesDocument.BYTES] = leaves.held()
    return stored, leaves.numbers


def _written(record: TaskWrites, leaves: Leaves) -> list[Any]:
    task, path, writes = record
    if path.startswith(_USUAL):
        path = "^" + path.removeprefix(_USUAL)
    elif path.startswith("^"):
        path = "^" + path
    return [task, path, {name: [of, leaves.fold(tree)] for name, (of, tree) in writes.items()}]


def opened(stored: Document) -> Document:
    """Return a stored document with its trees and `TaskWrites`.

    Raises:
        CheckpointCorruptError: It is damaged.
    """
    tree_at = _tree_at(stored.get(BytesDocument.BYTES, []))
    document = stored.copy()
    for name in _TREES & stored.keys():
        if name != "c" or type(stored["c"]) is not dict:
            document[name] = tree_at(stored[name])
    if "v" in stored:
        document["v"] = {channel: tree_at(part) for channel, part in stored["v"].items()}
    if "b" in stored:
        document["b"] = [
            TaskWrites(
                task, _long_path(path), {name: [of, tree_at(v)] for name, (of, v) in writes.items()}
            )
            for task, path, writes in stored["b"]
        ]
    return document


def _tree_at(held: Any) -> Callable[[Any], Tree]:
    """Return the function that converts a value of a document to a tree."""
    if not isinstance(held, dict):
        # An earlier version wrote the document.
        return partial(tree_of, texts=held)
    pairs = cast("dict[str, Any]", held).items()
    numbered = {
        # A checkpointer of JSON alone has text.
        int(name): data if type(data) is bytes else data.encode("latin-1")
        for name, data in pairs
    }
    return partial(unfold, held=numbered)


def numbers_of(stored: Document) -> dict[bytes, int]:
    """Return the numbers of the bytes of a stored document."""
    held: Any = stored.get(BytesDocument.BYTES)
    if not isinstance(held, dict):
        return {}
    pairs = cast("dict[str, Any]", held).items()
    return {data: int(name) for name, data in pairs if type(data) is bytes}


def _long_path(path: str) -> str:
    if path.startswith("^^"):
        return path[1:]
    return _USUAL + path[1:] if path.startswith("^") else path


def alone_of(checkpoint_id: str, records: Sequence[TaskWrites]) -> Document:
    """Return the document of separate writes, as it is stored."""
    return closed({"of": checkpoint_id, "b": records}, {})[0]


def stored_by(checkpointer: BaseCheckpointer, document: Document) -> State:
    """Return a closed document as a state for a checkpointer, which may know JSON alone."""
    if isinstance(checkpointer, DeltaCheckpointer):
        return BytesDocument(document)
    return readable(document, Kind.BYTES)


def metadata_beside(
    metadata: Mapping[str, Any], document: Document, *, low: bool
) -> dict[str, Any]:
    """Return the metadata beside a document.

    Args:
        metadata: LangGraph's metadata.
        document: The complete document.
        low: Whether a greater id exists.
    """
    beside = _plain(metadata)
    if beside.get(_USUALLY_EMPTY) == {}:
        del beside[_USUALLY_EMPTY]
    elif _USUALLY_EMPTY not in beside:
        beside[_BARE] = 1
    if "m" in document:
        beside["~part"] = 1
    if low:
        beside["~low"] = 1
    if "b" in document:
        beside["~of"] = digest_of(document["p"])
    counters: Mapping[str, Any] | None = beside.get(COUNTERS)
    if counters:
        beside["~parent"] = document.get("p", "")
        held = [channel for channel in counters if channel in document["v"]]
        if held:
            beside["~held"] = held
    return beside


def _plain(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return the metadata that is plain JSON; a tuple counts as a list."""
    listed = {key: _listed(v) for key, v in metadata.items() if not key.startswith(_OURS)}
    if _is_plain(listed):
        return listed
    return {key: value for key, value in listed.items() if _is_plain({key: value})}


def _is_plain(item: Any) -> bool:
    try:
        encode_json(item)
    except ValueNotSerializableError:
        return False
    return True


def _listed(value: Any) -> Any:
    if type(value) is dict:
        return {key: _listed(child) for key, child in cast("dict[str, Any]", value).items()}
    if type(value) in (tuple, list):
        return [_listed(child) for child in cast("list[Any]", value)]
    return value


def metadata_of(serde: SerializerProtocol, head: Head, document: Document) -> CheckpointMetadata:
    """Return all of a checkpoint's metadata."""
    whole = head.metadata if head.whole else decode_value(serde, document["m"])
    return cast("CheckpointMetadata", whole)
