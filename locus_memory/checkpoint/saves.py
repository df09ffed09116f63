"""The arguments of a save, checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from locus_memory._internal.quoting import quote
from locus_memory.checkpoint.base import RestoredCheckpoint, Unset
from locus_memory.checkpoint.record import RecordHead
from locus_memory.checkpoint.states import BytesDocument, Kind, Written, write_state
from locus_memory.errors import BackendUnavailableError, InvalidArgumentError
from locus_memory.store.item import check_identifier
from locus_memory.store.json_values import decode_json, encode_metadata

__all__ = ["Save", "busy", "check_names", "checked_metadata", "restored_save"]


@dataclass(frozen=True, slots=True)
class Save:
    """The arguments of a call of `save` or of `restore`.

    Attributes:
        head: The head of the record, as far as the call says it.
        named: Whether the caller gave the id, so that there may be a checkpoint to replace.
        expected_parent: The checkpoint that must be the newest.
        kind: The kind of the state.
    """

    head: RecordHead
    named: bool
    expected_parent: str | Unset | None
    kind: Kind


def restored_save(
    thread_id: str, checkpoint: RestoredCheckpoint, expected_parent: str | Unset | None
) -> tuple[Save, Written]:
    """Return the save of a checkpoint that is restored, and its state.

    Raises:
        InvalidArgumentError: A field is invalid.
        StateTypeError: It has no state.
    """
    check_names(thread_id, checkpoint.checkpoint_id)
    moment: object = checkpoint.created_at
    if not isinstance(moment, datetime) or moment.tzinfo is None:
        raise InvalidArgumentError(
            f"created_at is a datetime with a time zone, not {quote(moment)}"
        )
    if checkpoint.forked_from is not None:
        check_names(*checkpoint.forked_from)
    state = checkpoint.state
    if checkpoint.kind == Kind.BYTES.name.lower() and isinstance(state, Mapping):
        state = BytesDocument.of_text(state)
    written = write_state(state)
    head = RecordHead.unsaved(
        thread_id,
        checkpoint.checkpoint_id,
        metadata=checked_metadata(checkpoint.metadata),
        created_at=moment.timestamp(),
        forked_from=checkpoint.forked_from,
    )
    kind = _kind(checkpoint.kind, written.kind)
    return Save(head, named=True, expected_parent=expected_parent, kind=kind), written


def _kind(name: str | None, own: Kind) -> Kind:
    if name is None:
        return own
    try:
        return Kind[name.upper()]
    except (AttributeError, KeyError):
        known = ", ".join(kind.name.lower() for kind in Kind)
        raise InvalidArgumentError(f"kind is one of {known}, not {quote(name)}") from None


def checked_metadata(metadata: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return a copy of the metadata of a checkpoint.

    Raises:
        InvalidArgumentError: It is not a JSON object.
    """
    copied: dict[str, Any] = decode_json(encode_metadata(metadata))
    return copied


def check_names(thread_id: str, checkpoint_id: str | None = None) -> None:
    """Raise `InvalidKeyError` unless the names are non-empty strings."""
    check_identifier(thread_id, "a thread id")
    if checkpoint_id is not None:
        check_identifier(checkpoint_id, "a checkpoint id")


def busy(thread_id: str) -> BackendUnavailableError:
    """Return the error of a thread that never stays as it was read."""
    return BackendUnavailableError(
        f"thread {quote(thread_id)} kept changing while it was written; try again"
    )
