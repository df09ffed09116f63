"""Threads and checkpoints: their rows, states, differences, forks and deletion."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from locus_memory.backends.base import store_of
from locus_memory.checkpoint.differences import compare, messages_of
from locus_memory.errors import CheckpointNotFoundError
from locus_memory.inspection.errors import CommandError
from locus_memory.inspection.names import all_checkpoints, find_thread
from locus_memory.inspection.states import Tell, read_metadata, read_state
from locus_memory.inspection.text import visible
from locus_memory.integrations.langgraph.threads import Place
from locus_memory.transfer.chats.openai import write_message

if TYPE_CHECKING:
    from locus_memory.backends.base import Backend
    from locus_memory.checkpoint.base import BaseCheckpointer, CheckpointInfo

__all__ = [
    "checkpoint_name",
    "compare_checkpoints",
    "conversation_of",
    "describe_checkpoint",
    "describe_thread",
    "fork_thread",
    "load_state",
    "metadata_of",
    "plan_removal",
    "prune_thread",
    "remove_planned",
    "session_of",
    "write_messages",
]


async def describe_thread(checkpointer: BaseCheckpointer, thread_id: str) -> dict[str, Any]:
    """Return the row of a thread, with its size and its newest checkpoint."""
    usage = await checkpointer.get_storage_stats(thread_id)
    newest = await checkpointer.list_with_metadata(thread_id, 1)
    return {
        "thread_id": thread_id,
        "checkpoints": usage["total_checkpoints"],
        "stored_bytes": usage["compressed_size"],
        "newest": describe_checkpoint(newest[0]) if newest else None,
    }


def checkpoint_name(place: tuple[str, str] | None) -> dict[str, str] | None:
    """Return a thread and a checkpoint of it by name."""
    return None if place is None else {"thread_id": place[0], "checkpoint_id": place[1]}


def describe_checkpoint(info: CheckpointInfo) -> dict[str, Any]:
    """Return the row of a checkpoint."""
    return {
        "checkpoint_id": info.checkpoint_id,
        "sequence": info.sequence,
        "created_at": info.created_at.isoformat(),
        "metadata": read_metadata(info.thread_id, info.metadata),
        "is_full": info.is_full,
        "bytes": info.size,
        "stored_bytes": info.stored_size,
        "forked_from": checkpoint_name(info.forked_from),
    }


async def load_state(
    backend: Backend, thread_id: str, checkpoint_id: str, tell: Tell | None = None
) -> dict[str, Any]:
    """Return a state with its metadata; `tell` as of `read_state`."""
    metadata = await backend.checkpointer.get_metadata(thread_id, checkpoint_id)
    return {
        "thread_id": thread_id,
        "checkpoint_id": checkpoint_id,
        "metadata": read_metadata(thread_id, metadata),
        "state": await read_state(backend.checkpointer, thread_id, checkpoint_id, tell=tell),
    }


async def conversation_of(
    checkpointer: BaseCheckpointer,
    thread_id: str,
    checkpoint_id: str,
    *,
    bare: bool = False,
    tell: Tell | None = None,
) -> dict[str, Any]:
    """Return the conversation of a state in the OpenAI format.

    Args:
        checkpointer: The checkpointer of the thread.
        thread_id: The thread.
        checkpoint_id: The checkpoint.
        bare: Whether to leave out ids and metadata, which the OpenAI API does not accept.
        tell: As of `read_state`.

    Raises:
        CommandError: The state has no messages, or an entry is not a message.
    """
    state: Any = await read_state(checkpointer, thread_id, checkpoint_id, tell=tell)
    messages = write_messages(messages_of(state)[0], bare=bare)
    if not messages:
        raise CommandError(f"{thread_id}: the state has no messages")
    metadata = state.get("metadata")
    is_told = isinstance(metadata, dict) and metadata and not bare
    told = {"metadata": metadata} if is_told else {}
    return {"id": thread_id, "messages": messages, **told}


def write_messages(messages: list[Any], *, bare: bool = False) -> list[dict[str, Any]]:
    """Return a state's messages in the OpenAI format.

    Args:
        messages: The messages of a state.
        bare: Whether to leave out `id` and `metadata`, which the OpenAI API does not accept.

    Raises:
        CommandError: An entry is not a message, or a field of it is none of a message.
    """
    written: list[dict[str, Any]] = []
    for place, message in enumerate(messages, 1):
        if not isinstance(message, dict) or not isinstance(message.get("role"), str):
            raise CommandError(f"message {place} is not a message: it has no role")
        try:
            written.append(write_message(message, bare=bare))
        except (AttributeError, TypeError, ValueError):
            # Others may have saved the state, with anything in its fields.
            reason = "a field is not as in a message"
            raise CommandError(f"message {place} cannot be written: {reason}") from None
    return written


def metadata_of(message: Any) -> dict[str, Any]:
    """Return the metadata of a message; empty if it has none."""
    metadata = message.get("metadata") if isinstance(message, dict) else None
    return metadata if isinstance(metadata, dict) else {}


def session_of(message: Any) -> str:
    """Return the session of a message and its date; empty if it names none."""
    metadata = metadata_of(message)
    number, date = metadata.get("session"), metadata.get("session_date")
    parts = [f"session {number}"] if isinstance(number, int) else []
    return visible(", ".join([*parts, date] if isinstance(date, str) else parts))


async def compare_checkpoints(
    backend: Backend, *places: tuple[str, str], tell: Tell | None = None
) -> dict[str, Any]:
    """Return the difference between two checkpoints, each given by its thread and its id."""
    states = [await read_state(backend.checkpointer, *place, tell=tell) for place in places]
    sides = [
        {"thread_id": thread, "checkpoint_id": checkpoint, "messages": len(messages_of(state)[0])}
        for (thread, checkpoint), state in zip(places, states, strict=True)
    ]
    return {"a": sides[0], "b": sides[1], **compare(*states).to_dict()}


async def fork_thread(
    backend: Backend, thread_id: str, checkpoint_id: str, new: str
) -> dict[str, Any]:
    """Fork a thread, with LangGraph's pending writes, under a name that LangGraph finds."""
    source, target = Place.named(thread_id), Place.named(new)
    name = new
    if source is not None and thread_id == source.name:
        if target is None:
            target = Place.at(new, source.namespace)
            name = target.name
        # Before the fork becomes visible.
        await _copy_writes(backend.checkpointer, source.writes, name)
    forked = await backend.checkpointer.fork(thread_id, checkpoint_id, name)
    usage = await backend.checkpointer.get_storage_stats(name)
    return {
        "thread_id": name,
        "checkpoint_id": forked,
        "source": thread_id,
        "checkpoints": usage["total_checkpoints"],
    }


async def _copy_writes(checkpointer: BaseCheckpointer, writes: str, name: str) -> None:
    target = Place.named(name)
    if target is None or name != target.name or await checkpointer.exists(name):
        return
    if await checkpointer.exists(writes):
        await checkpointer.copy_thread(writes, target.writes)


async def prune_thread(
    backend: Backend, *, thread: str, keep: int | None, before: datetime | None, dry_run: bool
) -> dict[str, Any]:
    """Prune a thread, or return what would go; the newest checkpoint stays."""
    thread_id = await find_thread(backend.checkpointer, thread)
    infos = await all_checkpoints(backend.checkpointer, thread_id)
    condemned = [
        info
        for info in infos[: max(0, len(infos) - (keep or 1))]
        if before is None or info.created_at < before
    ]
    deleted = len(condemned)
    if not dry_run:
        deleted = await backend.checkpointer.prune(thread_id, keep_last=keep, older_than=before)
    return {
        "thread_id": thread_id,
        "dry_run": dry_run,
        "total": len(infos),
        "deleted": deleted,
        "checkpoint_ids": [info.checkpoint_id for info in condemned],
    }


async def plan_removal(backend: Backend, *, threads: list[str]) -> list[dict[str, Any]]:
    """Return what the deletion of each thread covers; nothing is deleted.

    Raises:
        CheckpointNotFoundError: A thread does not exist.
    """
    names = [await find_thread(backend.checkpointer, name) for name in threads]
    # A thread that was named twice counts once.
    return [await _doomed(backend.checkpointer, name) for name in dict.fromkeys(names)]


async def _doomed(checkpointer: BaseCheckpointer, thread_id: str) -> dict[str, Any]:
    if not await checkpointer.exists(thread_id):
        raise CheckpointNotFoundError(thread_id)
    place = Place.named(thread_id)
    is_graph = place is not None and thread_id == place.name
    writes = (
        [place.writes] if place and is_graph and await checkpointer.exists(place.writes) else []
    )
    usages = [await checkpointer.get_storage_stats(name) for name in (thread_id, *writes)]
    return {
        "thread_id": thread_id,
        "checkpoints": usages[0]["total_checkpoints"],
        "stored_bytes": sum(usage["compressed_size"] for usage in usages),
        "writes": writes,
    }


async def remove_planned(backend: Backend, *, plan: list[dict[str, Any]]) -> None:
    """Delete the threads of a plan, and the records of their runs."""
    from locus_memory.memory.layers.runs import drop_runs  # noqa: PLC0415 - help must be quick

    store = store_of(backend)
    for each in plan:
        place = Place.named(each["thread_id"])
        if store is not None:
            await drop_runs(store, place.thread_id if place else each["thread_id"])
        # Delete the writes first: until then, their checkpoints still lead to them.
        for name in (*each["writes"], each["thread_id"]):
            await backend.checkpointer.delete(name)
