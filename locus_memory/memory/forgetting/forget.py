"""Permanent erasure of memories, their vectors and history, and their sources.

A thread of another user is never touched. Summaries are found by the first message of their
conversation. The summaries of another conversation with the same first message are erased too, and
created again when they are needed. Every thread is read, so the call can take long. If it is
interrupted, call it again: the data that leads to other data is erased last. The store is compacted
at the end, so no index holds a word of erased data. A database may keep deleted rows in free pages
and backups; the library does not erase these.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable
from contextlib import AsyncExitStack, suppress

from locus_memory.backends.base import Backend
from locus_memory.checkpoint.base import BaseCheckpointer
from locus_memory.errors import ConfigurationError
from locus_memory.events import emit
from locus_memory.memory.forgetting.choice import Choice
from locus_memory.memory.forgetting.plan import ForgetPlan, ForgetReport, ForgottenMemory
from locus_memory.memory.layers.identity import adopt
from locus_memory.memory.ledger.ledger import Ledger
from locus_memory.memory.models import MemoryType
from locus_memory.registry import as_checkpointer, as_store, open_backend
from locus_memory.store.base import BaseStore
from locus_memory.store.item import Namespace, check_namespace

__all__ = ["ForgetReport", "ForgottenMemory", "forget"]


async def forget(
    where: str | BaseStore | Backend,
    checkpointer: str | BaseCheckpointer | Backend | None = None,
    *,
    user_id: str | None = None,
    key: str | None = None,
    type: MemoryType | str | None = None,  # noqa: A002 - the field's word
    query: str | None = None,
    prefix: Namespace = ("locus_memory",),
    threads: bool = False,
    thread_namespaces: Iterable[Namespace] = (),
    summary_namespaces: Iterable[Namespace] = (),
    dry_run: bool = False,
) -> ForgetReport:
    """Erase memories permanently: by user, by key or by query.

    - With `user_id` alone, all data of that user is erased: the memories with their vectors and
      histories, messages that wait for extraction, and all below `("users", user_id)`: what a
      `StoreContext` writes, the tree of the user's resources, and an index of documents there.
      `kept` of the report names what stays: indexes and trees that users share, and a user of this
      name under another prefix. Every thread whose checkpoints or newest state have that `user_id`
      in their metadata is erased as a whole, with its rolling summaries and its
      `("sessions", thread_id)` items. A thread without checkpoints belongs to the user whose
      extraction cursor names it.
    - With `key`, that memory is erased, of the user or else of the scope without a user. The
      report names the threads of its source messages, and forks that hold them; with `threads`,
      these are erased as well. Queued messages among the sources are always erased. So are
      recorded turns from these messages and, as a whole, each episode of a session that contains
      such a message: it may tell the memory in other words. A message that states the memory again
      is a source as well. What a person fixed is a memory as any other.
    - With `query`, the memories with all its words, stop words aside, are erased, and queued
      messages with them. If only past versions of a memory have them, only these are erased. Words
      count in any form, with or without accents and points. In scripts without spaces, the letters
      stand together somewhere; in Korean, at the beginning of a word.
    - In any case, all records of what runs of the scope were shown are erased, since they may show
      it; but a key that is not there erases nothing.

    Let the user's runs end first: a run in progress may write again.

    Args:
        where: A store, a backend or a provider string; `user_id` alone needs no store.
        checkpointer: The threads'; by default the backend's. Without one, no thread is erased.
        user_id: The user whose memories are erased.
        key: The memory's key.
        type: Only memories of this type.
        query: Words.
        prefix: The `namespace_prefix` of the memory manager.
        threads: Erase the threads that the memories came from.
        thread_namespaces: Namespaces with one namespace per thread, erased with its thread.
        summary_namespaces: More namespaces of summaries, besides `("locus_memory", "summaries")`
            and `(*prefix, "summaries")`.
        dry_run: Only report what a real run erases; nothing is written.

    Raises:
        InvalidArgumentError: Not one of user, key and query, or both a key and a query.
        ConfigurationError: `where` has no store, or with `user_id` alone nothing at all.
        BackendError: The database failed; call it again.
    """
    choice = Choice.of(user_id, key, type, query, prefix)
    spaces = tuple(map(check_namespace, thread_namespaces))
    summaries = tuple(map(check_namespace, summary_namespaces))
    async with AsyncExitStack() as stack:
        if isinstance(where, str):
            # The states may be of any type: they are only read.
            opened: Backend = open_backend(where, state_type=None)
            where = await stack.enter_async_context(opened)
        if isinstance(checkpointer, str):
            opened = open_backend(checkpointer, state_type=None)
            checkpointer = await stack.enter_async_context(opened)
        checkpoints = _checkpointer_of(where, checkpointer)
        is_optional = choice.is_user and checkpoints is not None
        store, has_store = _store_of(where, is_optional=is_optional)
        if not (dry_run or choice.is_user):
            await adopt(store, Ledger(store, sys.maxsize, clock=time.time), choice.scope)
        plan = ForgetPlan(store, checkpoints, choice, threads or choice.is_user)
        await plan.find(spaces, summaries)
        report = plan.report(dry_run=dry_run, has_store=has_store)
        if not dry_run:
            await plan.carry_out()
            emit("memory.forgotten", memories=len(report.memories), threads=len(report.threads))
        return report


def _checkpointer_of(
    where: BaseStore | Backend, checkpointer: str | BaseCheckpointer | Backend | None
) -> BaseCheckpointer | None:
    if checkpointer is not None:
        return as_checkpointer(checkpointer)[0]
    with suppress(ConfigurationError):
        return where.checkpointer if isinstance(where, Backend) else None
    # A store alone is enough.
    return None


def _store_of(where: BaseStore | Backend, *, is_optional: bool) -> tuple[BaseStore, bool]:
    """Return the store, and whether it is one: an empty one will do if there are only threads."""
    try:
        return as_store(where)[0], True
    except ConfigurationError:
        if not (is_optional and isinstance(where, Backend)):
            raise
        return as_store("memory")[0], False
