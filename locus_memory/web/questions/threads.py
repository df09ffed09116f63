"""Threads and checkpoints: lists, states, differences, forks and deletion."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from pydantic import Field

from locus_memory.errors import CheckpointNotFoundError
from locus_memory.inspection.names import find_checkpoint, find_thread, hides
from locus_memory.inspection.threads import (
    compare_checkpoints,
    describe_checkpoint,
    describe_thread,
    fork_thread,
    load_state,
    plan_removal,
    prune_thread,
    remove_planned,
)
from locus_memory.store.base import side_by_side
from locus_memory.web.errors import RefusalError
from locus_memory.web.models import (
    Answer,
    PageAnswer,
    PageAsked,
    ThreadAsked,
    cursor_key,
    cut,
)
from locus_memory.web.questions.data import Data

__all__ = [
    "Checkpoint",
    "CheckpointsAsked",
    "CheckpointsPage",
    "Difference",
    "DifferenceAsked",
    "Edit",
    "ForkAsked",
    "Forked",
    "NumberedMessage",
    "PruneAsked",
    "Pruned",
    "RemovalAsked",
    "RemovalReport",
    "State",
    "StateAsked",
    "ThreadRow",
    "ThreadsAsked",
    "ThreadsPage",
    "delete_thread",
    "diff_checkpoints",
    "fork_checkpoint",
    "get_state",
    "list_checkpoints",
    "list_threads",
    "locate",
    "name_threads",
    "prune_checkpoints",
]


class CheckpointName(Answer):
    """A checkpoint of a thread."""

    thread_id: str
    checkpoint_id: str


class Checkpoint(Answer):
    """A checkpoint, without its state."""

    checkpoint_id: str
    sequence: int
    """Its place in the order of the storage; higher is newer."""
    created_at: datetime
    metadata: dict[str, Any] | None
    is_full: bool
    """Whether it is stored as a whole state rather than a delta."""
    bytes: int
    """The size of its record before compression."""
    stored_bytes: int
    """The size of its record as stored."""
    forked_from: CheckpointName | None
    """The source of the fork, on the checkpoint that the fork began with."""


class ThreadsAsked(PageAsked):
    """Which threads to list."""

    prefix: str | None = None
    """Only thread ids that start with this prefix."""


class ThreadRow(Answer):
    """A thread."""

    thread_id: str
    checkpoints: int
    stored_bytes: int
    newest: Checkpoint | None


class ThreadsPage(PageAnswer):
    """A page of threads, in ascending order of their ids."""

    threads: list[ThreadRow]


class CheckpointsAsked(PageAsked, ThreadAsked):
    """Which checkpoints of one thread to list."""


class CheckpointsPage(PageAnswer):
    """A page of checkpoints, the newest first."""

    thread_id: str
    checkpoints: list[Checkpoint]


class StateAsked(ThreadAsked):
    """A checkpoint."""

    checkpoint: str | None = None
    """Its id, or its place: 1 is the oldest, -1 the newest; by default the newest."""


class State(Answer):
    """The state of a thread at a checkpoint."""

    thread_id: str
    checkpoint_id: str
    metadata: dict[str, Any] | None
    state: Any


class DifferenceAsked(ThreadAsked):
    """Two checkpoints to compare."""

    checkpoint: str | None = None
    """The first checkpoint; by default the newest."""
    other_thread: str | None = None
    """The thread of the second checkpoint; by default the same."""
    other_checkpoint: str | None = None
    """The second checkpoint; by default the newest."""


class Side(Answer):
    """One side of a comparison."""

    thread_id: str
    checkpoint_id: str
    messages: int


class NumberedMessage(Answer):
    """A message with its place in the conversation, from 1."""

    place: int
    message: Any


class Edit(Answer):
    """A run of messages that differ."""

    removed: list[NumberedMessage]
    added: list[NumberedMessage]


class MessageDifference(Answer):
    """The differences between two conversations."""

    common: int
    edits: list[Edit]


class ChangedPath(Answer):
    """One path of the states that differs."""

    path: str
    kind: str
    before: Any
    after: Any


class Difference(Answer):
    """The differences between two states."""

    a: Side
    b: Side
    messages: MessageDifference
    changes: list[ChangedPath]


class ForkAsked(ThreadAsked):
    """A fork of a thread."""

    checkpoint: str | None = None
    """The last checkpoint of the fork; by default the newest."""
    new_thread: str = Field(min_length=1)


class Forked(Answer):
    """A thread that was forked."""

    thread_id: str
    checkpoint_id: str
    source: str
    checkpoints: int


class PruneAsked(ThreadAsked):
    """Which old checkpoints of a thread to delete; with both limits, those over both."""

    keep_last: int | None = Field(default=None, ge=1)
    """Keep this many of the newest."""
    older_than: datetime | None = None
    """Keep what was saved at or after this moment; without a time zone, UTC."""
    dry_run: bool
    """Only show what would be deleted."""


class Pruned(Answer):
    """The checkpoints that were deleted, or would be."""

    thread_id: str
    dry_run: bool
    total: int
    """The number of checkpoints before."""
    deleted: int
    checkpoint_ids: list[str]


class RemovalAsked(ThreadAsked):
    """A thread, or one checkpoint of it, to delete."""

    checkpoint: str | None = None
    """Only this checkpoint, by its id; all others stay loadable."""
    dry_run: bool = False
    """Only show what would be deleted."""


class RemovalReport(Answer):
    """The thread or checkpoint that was deleted, or would be."""

    dry_run: bool
    thread_id: str
    checkpoint_id: str | None
    checkpoints: int
    stored_bytes: int | None
    """The stored size of the thread; `null` for one checkpoint."""


async def list_threads(data: Data, asked: ThreadsAsked) -> ThreadsPage:
    """List the threads with their sizes and newest checkpoints."""
    page, following = await name_threads(data, asked)
    # A server answers late, and not slowly.
    rows = await side_by_side(lambda name: describe_thread(data.checkpointer, name), page)
    return ThreadsPage(threads=list(map(ThreadRow.model_validate, rows)), next=following)


async def name_threads(data: Data, asked: ThreadsAsked) -> tuple[list[str], str | None]:
    """Return the ids of a page of threads, and the cursor of the next page."""
    names: list[str] = []
    after = cursor_key(asked.cursor)
    wanted = asked.limit + 1
    while len(names) < wanted:
        found = await data.checkpointer.list_threads(wanted, prefix=asked.prefix, after=after)
        names += [name for name in found if not hides(name)]
        if len(found) < wanted:
            break
        after = found[-1]
    return cut(names, asked.limit, str)


async def list_checkpoints(data: Data, asked: CheckpointsAsked) -> CheckpointsPage:
    """List the checkpoints of a thread, the newest first."""
    thread = await find_thread(data.checkpointer, asked.thread)
    before = cursor_key(asked.cursor)
    found = await data.checkpointer.list_with_metadata(thread, asked.limit + 1, before=before)
    if not found and before is None:
        raise CheckpointNotFoundError(asked.thread)
    page, following = cut(found, asked.limit, lambda info: info.checkpoint_id)
    rows = [Checkpoint.model_validate(describe_checkpoint(each)) for each in page]
    return CheckpointsPage(thread_id=thread, checkpoints=rows, next=following)


async def get_state(data: Data, asked: StateAsked) -> State:
    """Return the state at a checkpoint."""
    place = await locate(data, asked.thread, asked.checkpoint)
    return State.model_validate(await load_state(data.backend, *place))


async def diff_checkpoints(data: Data, asked: DifferenceAsked) -> Difference:
    """Return what changed from one checkpoint to another, of one thread or of two."""
    first = await locate(data, asked.thread, asked.checkpoint)
    second = await locate(data, asked.other_thread or asked.thread, asked.other_checkpoint)
    return Difference.model_validate(await compare_checkpoints(data.backend, first, second))


async def fork_checkpoint(data: Data, asked: ForkAsked) -> Forked:
    """Start a new thread from a checkpoint, with its history."""
    place = await locate(data, asked.thread, asked.checkpoint)
    return Forked.model_validate(await fork_thread(data.backend, *place, asked.new_thread))


async def prune_checkpoints(data: Data, asked: PruneAsked) -> Pruned:
    """Delete old checkpoints of a thread, or preview it; the newest one stays."""
    if asked.keep_last is None and asked.older_than is None:
        raise RefusalError(400, "give keep_last, older_than or both")
    done = await prune_thread(
        data.backend,
        thread=asked.thread,
        keep=asked.keep_last,
        before=_aware(asked.older_than),
        dry_run=asked.dry_run,
    )
    return Pruned.model_validate(done)


async def delete_thread(data: Data, asked: RemovalAsked) -> RemovalReport:
    """Delete a thread with all its checkpoints, or one of its checkpoints."""
    if asked.checkpoint is not None:
        return await _delete_checkpoint(data, asked, asked.checkpoint)
    plan = await plan_removal(data.backend, threads=[asked.thread])
    if not asked.dry_run:
        await remove_planned(data.backend, plan=plan)
    (each,) = plan
    return RemovalReport(
        dry_run=asked.dry_run,
        thread_id=each["thread_id"],
        checkpoint_id=None,
        checkpoints=each["checkpoints"],
        stored_bytes=each["stored_bytes"],
    )


async def locate(data: Data, thread: str, checkpoint: str | None) -> tuple[str, str]:
    """Return the thread and the checkpoint that a request names.

    Raises:
        CheckpointNotFoundError: There is no such thread or checkpoint.
    """
    name = await find_thread(data.checkpointer, thread)
    return name, await find_checkpoint(data.checkpointer, name, checkpoint)


async def _delete_checkpoint(data: Data, asked: RemovalAsked, name: str) -> RemovalReport:
    thread = await find_thread(data.checkpointer, asked.thread)
    exists = await data.checkpointer.exists(thread, name)
    # A place such as -1 would name another checkpoint when the request is repeated.
    if not exists or (not asked.dry_run and not await data.checkpointer.delete(thread, name)):
        raise CheckpointNotFoundError(asked.thread, name)
    return RemovalReport(
        dry_run=asked.dry_run,
        thread_id=thread,
        checkpoint_id=name,
        checkpoints=1,
        stored_bytes=None,
    )


def _aware(moment: datetime | None) -> datetime | None:
    return moment.replace(tzinfo=UTC) if moment is not None and moment.tzinfo is None else moment
