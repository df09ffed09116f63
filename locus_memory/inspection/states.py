"""The reading of states: a state of LangGraph is decoded to plain data."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from locus_memory._internal.providers.drivers import require
from locus_memory.errors import CheckpointNotFoundError
from locus_memory.integrations.langgraph.threads import Place

if TYPE_CHECKING:
    from locus_memory.checkpoint.base import BaseCheckpointer

__all__ = ["Tell", "read_metadata", "read_state"]

Tell = Callable[[str], None]
"""Takes a note for the person who looks: what of a state cannot be shown."""

_INTERNAL = ("__start__", "__pregel_", "branch:to:")
"""Prefixes of the names of LangGraph's internal channels."""


async def read_state(
    checkpointer: BaseCheckpointer, thread_id: str, checkpoint_id: str, tell: Tell | None = None
) -> Any:
    """Return a state as plain data.

    For a graph of LangGraph, that is the values of its channels. No class that the stored bytes
    name is built.

    Args:
        checkpointer: The checkpointer of the thread.
        thread_id: The thread.
        checkpoint_id: The checkpoint.
        tell: Takes a note about each channel that cannot be shown.

    Raises:
        CheckpointNotFoundError: The checkpoint does not exist.
        MissingDriverError: The state is LangGraph's, and LangGraph is not installed.
    """
    place = Place.named(thread_id)
    if place is None or thread_id != place.name:
        return await checkpointer.load(thread_id, checkpoint_id)
    needed_by = f"thread {place.thread_id!r} of LangGraph"
    require("langgraph.checkpoint.base", "langgraph", needed_by=needed_by)
    from locus_memory.inspection.langgraph_plain import PlainSerializer  # noqa: PLC0415 - seldom needed
    from locus_memory.integrations.langgraph import LocusSaver  # noqa: PLC0415 - an extra
    from locus_memory.integrations.langgraph.checkpoints.records import COUNTERS  # noqa: PLC0415 - the same

    saver = LocusSaver(checkpointer, serde=PlainSerializer())
    found = await saver.aget_tuple(place.config(checkpoint_id))
    if found is None:
        raise CheckpointNotFoundError(thread_id, checkpoint_id)
    values: dict[str, Any] = found.checkpoint["channel_values"]
    for channel in set(found.metadata.get(COUNTERS) or ()).difference(values):
        if tell is not None:
            tell(f"channel {channel!r} is stored as deltas, which only its graph can combine")
    return {
        name: _snapshot(value) for name, value in values.items() if not name.startswith(_INTERNAL)
    }


def _snapshot(value: Any) -> Any:
    """Return a channel's value without LangGraph's wrapper of a snapshot."""
    return getattr(value, "value", value)


def read_metadata(thread_id: str, metadata: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return a checkpoint's metadata without the internal fields of the LangGraph integration."""
    if metadata is None or Place.named(thread_id) is None:
        return metadata
    return {name: value for name, value in metadata.items() if not name.startswith("~")}
