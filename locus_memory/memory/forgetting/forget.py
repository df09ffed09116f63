"""Forgetting for good: memories with their vectors and history, and what they came from.

A thread of another user is never touched. Summaries are found by how a conversation opens: those
of another one that opens with the same message go along, and are made again when they are
needed. Every thread is looked at, so it takes its time. If it is interrupted, call it again: what
leads to the rest is erased last. The store is compacted at the end, so that no index holds a word
of what is gone; what a database keeps of deleted rows, in free pages and backups, is its own
affair.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager

from locus_memory.backends.base import Backend
from locus_memory.checkpoint.base import BaseCheckpointer
from locus_memory.errors import ConfigurationError
from locus_memory.events import emit
from locus_memory.memory.forgetting.plan import ForgetPlan, ForgetTarget
from locus_memory.memory.forgetting.report import ForgetReport, ForgottenMemory
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
    """Erase for good: by user, by key or by query; unlike a retired memory, nothing is kept.

    - With `user_id` alone, everything of that user: the memories with their vectors and
      histories, messages that wait for extraction, the items of `("users", user_id)`, which a
      `StoreContext` writes, and whole every thread whose checkpoints or newest state have that
      `user_id` in their metadata, with its rolling summaries and its `("sessions", thread_id)`
      items. Of a thread without checkpoints, the user's reading mark tells whose they are.
    - With `key`, that memory, of the user or else of the scope that has no user. The report
      names the threads, forks included, that still hold the messages it came from; with
      `threads`, these go as well. What waits for extraction of these messages goes in any case.
    - With `query`, the memories that have all its words, stop words aside; of one that has them
      in past versions only, just those. Waiting messages with these words go, too.

    Let the user's runs end first: a run in progress may write again. More in the module.

    Args:
        where: A store, a backend or a provider string; with `user_id` alone, it needs no store.
        checkpointer: Where the threads are; by default the backend's. Without: no threads.
        user_id: Whose memories.
        key: The memory's key.
        type: Only memories of this type.
        query: Words.
        prefix: The `namespace_prefix` of the memory manager.
        threads: Erase the threads that the memories came from.
        thread_namespaces: Namespaces that hold one for each thread, which goes with its thread.
        summary_namespaces: Where summaries are, besides `("locus_memory", "summaries")` and
            `(*prefix, "summaries")`.
        dry_run: Only say what would go; nothing at all is written.

    Raises:
        InvalidArgumentError: It is not said what to forget, or in two ways at once.
        ConfigurationError: It leads to no store, or with `user_id` alone to nothing at all.
        BackendError: The database failed; call it again.
    """
    target = ForgetTarget.of(user_id, key, type, query, prefix)
    spaces = tuple(map(check_namespace, thread_namespaces))
    summaries = tuple(map(check_namespace, summary_namespaces))
    async with _opened(where, checkpointer) as (stored, checkpoints):
        has_store = _has_store(stored)
        plan = _plan(stored, checkpoints, target, with_threads=threads or target.is_user)
        await plan.find(spaces, summaries)
        report = await plan.report(dry_run=dry_run, has_store=has_store)
        if not dry_run:
            await plan.carry_out()
            emit("memory.forgotten", memories=len(report.memories), threads=len(report.threads))
    return report


def _plan(
    stored: BaseStore | Backend,
    checkpoints: BaseCheckpointer | None,
    target: ForgetTarget,
    *,
    with_threads: bool,
) -> ForgetPlan:
    """Return a plan; where threads are all there is to erase, over a store that is empty."""
    will_do = target.is_user and checkpoints is not None
    store, _ = as_store(stored if _has_store(stored) or not will_do else "memory")
    return ForgetPlan(store, checkpoints, target, with_threads=with_threads)


@asynccontextmanager
async def _opened(
    where: str | BaseStore | Backend, checkpointer: str | BaseCheckpointer | Backend | None
) -> AsyncGenerator[tuple[BaseStore | Backend, BaseCheckpointer | None]]:
    """Yield where the store is, and the checkpoints; what is opened here is closed again."""
    async with AsyncExitStack() as stack:
        if isinstance(where, str):
            # Whatever its states are, they are only looked at.
            backend: Backend = open_backend(where, state_type=None)
            where = await stack.enter_async_context(backend)
        if isinstance(checkpointer, str):
            opened = open_backend(checkpointer, state_type=None)
            checkpointer = await stack.enter_async_context(opened)
        if checkpointer is None:
            threads = _threads_of(where) if isinstance(where, Backend) else None
        else:
            threads, _ = as_checkpointer(checkpointer)
        yield where, threads


def _has_store(where: BaseStore | Backend) -> bool:
    try:
        as_store(where)
    except ConfigurationError:
        # What is no backend at all is a mistake, and told as one.
        return not isinstance(where, Backend)
    return True


def _threads_of(backend: Backend) -> BaseCheckpointer | None:
    try:
        return backend.checkpointer
    except ConfigurationError:
        # A store alone will do.
        return None
