"""Memories: their managers and users, one memory and its versions, changes and erasures."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from locus_memory._internal.quoting import quote
from locus_memory.errors import ConfigurationError
from locus_memory.inspection.errors import CommandError
from locus_memory.inspection.names import COMPARED, find_thread, namespaces_below, near
from locus_memory.inspection.sources import Sources
from locus_memory.inspection.text import visible_name
from locus_memory.integrations.langgraph.threads import Place

if TYPE_CHECKING:
    from locus_memory.backends.base import Backend
    from locus_memory.memory.forgetting.forget import ForgetReport
    from locus_memory.memory.layers.runs import SeenRun
    from locus_memory.memory.layers.vitals import Vitals
    from locus_memory.memory.manager import LLMMemoryManager
    from locus_memory.memory.models import Extractor, Memory
    from locus_memory.memory.options import ExtractMode
    from locus_memory.store.base import BaseStore
    from locus_memory.store.item import Namespace

__all__ = [
    "Row",
    "describe",
    "earlier",
    "elsewhere",
    "ending_of",
    "erased",
    "for_user",
    "history_of",
    "known_user",
    "open_manager",
    "remember_sentence",
    "row_of",
    "runs_of",
    "scoped_manager",
    "secret_in",
    "sequence_of",
    "undo_change",
    "users",
    "version",
    "whose",
]

Row = dict[str, Any]
"""A memory, or a version of one, as JSON."""

_NO_LIMIT = 2**31
_PATIENCE = 5.0
"""Seconds to wait for extraction on exit; the jobs that remain stay queued."""

_NAMED = 12
_LOOKED_AT = 100
"""How many users are asked for a memory that was sought without a user."""

_DIGITS = 4
_ENDINGS = {"update": "replaced", "delete": "deleted", "evict": "evicted", "undo": "undone"}


def open_manager(
    store: BaseStore,
    namespace: Namespace,
    extractor: Extractor | Callable[..., Any] | None = None,
    *,
    extract_mode: ExtractMode = "background",
    retention: float = 365.0,
    patience: float = _PATIENCE,
) -> LLMMemoryManager:
    """Return a manager of the memories of an agent: those below a namespace.

    It drops no past version: that limit is the application's to set. It extracts in the
    background: drain it. On exit it waits for `patience` seconds.
    """
    # Help must be quick.
    from locus_memory.memory.manager import LLMMemoryManager  # noqa: PLC0415

    return LLMMemoryManager(
        store,
        extract_fn=extractor,
        namespace_prefix=namespace,
        history_limit=_NO_LIMIT,
        extract_mode=extract_mode,
        retention=retention,
        drain_timeout=patience,
    )


def scoped_manager(store: BaseStore, namespace: Namespace, user: str | None) -> LLMMemoryManager:
    """Return a manager of the memories of a user, or of those without a user."""
    manager = open_manager(store, namespace)
    return manager if user is None else manager.for_user(user)


def for_user(user: str | None) -> str:
    """Return the end of a message about a user's memories."""
    return "" if user is None else f" for user {quote(user)}"


async def users(store: BaseStore, manager: LLMMemoryManager) -> list[str]:
    """Return all users with data in the manager's namespace, in order."""
    root = (*manager.namespace_prefix, "users")
    found = namespaces_below(store, root, len(root) + 1)
    return [each[-1] async for each in found if len(each) > len(root)]


async def known_user(store: BaseStore, manager: LLMMemoryManager, user: str) -> LLMMemoryManager:
    """Return the manager of a user.

    Raises:
        CommandError: Nothing is kept of the user; the error has the nearest name.
    """
    known = await users(store, manager)
    if user not in known:
        raise CommandError(f"no memories{for_user(user)}{near(user, known)}")
    return manager.for_user(user)


async def elsewhere(
    store: BaseStore, manager: LLMMemoryManager, key: str | None, user: str | None
) -> str:
    """Return the end of an error: where a memory is that was not found, as far as it is known.

    Args:
        store: The store.
        manager: The manager of the memories without a user.
        key: The key of the memory; `None`: all memories of the user were meant.
        user: The user whose memory it was thought to be.
    """
    from locus_memory.memory.scope import Scope  # noqa: PLC0415 - help must be quick

    known = await users(store, manager)
    if user is not None and user not in known:
        return near(user, known)
    if key is None:
        return ""
    for other in known[:_LOOKED_AT] if user is None else ():
        if await manager.for_user(other).history(key):
            return f"; user {other!r} has one: pass --user {other!r}"
    scoped = manager if user is None else manager.for_user(user)
    listed = await store.list_keys(Scope(scoped.namespace).current, COMPARED)
    history = (*scoped.namespace, "history")
    past = await store.list_namespaces((*history, "*", "*"), COMPARED)
    names = [name.partition(":")[2] for name in listed]
    names += [each[-1] for each in past if each[:-2] == history]
    return "" if key in names else near(key, names)


async def whose(backend: Backend, manager: LLMMemoryManager, user: str | None) -> str:
    """Return the end of a note that nothing is there: the nearest user, or whose data there is."""
    known = await users(backend.store, manager)
    if user in known:
        return ""
    if user is not None and (told := near(user, known)):
        return told
    named = ", ".join(visible_name(each) for each in known[:_NAMED])
    return f"; users with data are {named}: pass --user" if known else ""


def row_of(user: str | None, memory: Memory, vitals: Vitals) -> Row:
    """Return a current memory with the record of its use."""
    from locus_memory.memory.validity import said_at  # noqa: PLC0415 - help must be quick

    return {
        "user": user,
        "id": memory.id,
        "type": memory.type.value,
        "key": memory.key,
        "content": memory.content,
        "since": said_at(memory) or None,
        "metadata": memory.metadata,
        "salience": round(vitals.salience, _DIGITS),
        "trust": round(vitals.trust, _DIGITS),
        "hits": vitals.hits,
        "uses": vitals.use_count,
        "last_used": vitals.last_used,
    }


def sequence_of(memory: Memory) -> int | None:
    """Return the number of a version."""
    sequence = memory.metadata.get("sequence")
    return sequence if isinstance(sequence, int) else None


async def describe(
    manager: LLMMemoryManager, sources: Sources, memory: Memory, user: str | None
) -> Row:
    """Return a current memory as JSON, with the version that it replaced."""
    before = await earlier(manager, memory)
    (vitals,) = await manager.vitals([memory])
    return {
        **await version(sources, memory),
        **row_of(user, memory, vitals),
        "replaced": await version(sources, before[0]) if before else None,
    }


async def version(sources: Sources, memory: Memory) -> Row:
    """Return one version of a memory as JSON."""
    from locus_memory.memory.validity import said_at  # noqa: PLC0415 - help must be quick

    return {
        "type": memory.type.value,
        "key": memory.key,
        "content": memory.content,
        "since": said_at(memory) or None,
        "until": _text(memory.metadata.get("superseded_at")),
        "origin": _text(memory.metadata.get("origin")),
        "sources": await sources.of(memory),
        "metadata": memory.metadata,
    }


async def earlier(manager: LLMMemoryManager, memory: Memory) -> list[Memory]:
    """Return the earlier versions of a current memory, the newest first."""
    number = _replaced(memory)
    if number is None:
        return []
    past = {
        str(each.metadata.get("sequence")): each
        for each in await manager.history(memory.key, memory.type)
        if "superseded_at" in each.metadata
    }
    chain: list[Memory] = []
    while number in past:
        chain.append(past.pop(number))
        number = _replaced(chain[-1])
    return chain


def _replaced(memory: Memory) -> str | None:
    """Return the number of the version that a memory replaced."""
    link = memory.metadata.get("supersedes")
    return str(link.get("sequence")) if isinstance(link, Mapping) else None


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def ending_of(row: Row) -> str | None:
    """Return how a version ended, in a word; `None`: it is current."""
    if row["until"] is None:
        return None
    link = row["metadata"].get("superseded_by")
    change = link.get("change") if isinstance(link, Mapping) else None
    return _ENDINGS.get(str(change), "replaced")


def secret_in(content: str, key: str | None) -> str | None:
    """Return what kind of secret a sentence or its key looks like; `None`: it looks like none."""
    from locus_memory.memory.secrets.detection import find_secret  # noqa: PLC0415 - help must be quick

    return find_secret(content) or find_secret(key or "")


async def remember_sentence(
    manager: LLMMemoryManager,
    sources: Sources,
    *,
    content: str,
    user: str | None,
    key: str | None = None,
    kind: str | None = None,
    validity: Mapping[str, str | None] | None = None,
) -> Row:
    """Save a sentence, and return its memory; `changed` of it: whether it is new."""
    from locus_memory.events import collect  # noqa: PLC0415 - help must be quick
    from locus_memory.memory.phrases.naming import named_memory  # noqa: PLC0415

    memory = await named_memory(content, key, kind, {"extractor": "by hand", **(validity or {})})
    with collect() as events:
        saved = await manager.save([memory])
    duplicates = [
        str(event.attributes.get("duplicate_of"))
        for event in events
        if event.name == "memory.duplicate_dropped"
    ]
    current = saved[0].key if saved else (duplicates or [memory.key])[0]
    versions = await manager.history(current, memory.type)
    return {"changed": bool(saved), **await describe(manager, sources, versions[0], user)}


async def history_of(
    manager: LLMMemoryManager, sources: Sources, key: str, kind: Any, user: str | None
) -> list[Row]:
    """Return all versions of a memory, the current one first.

    Raises:
        CommandError: There is no such memory.
    """
    versions = await manager.history(key, kind)
    if not versions:
        raise CommandError(f"no memory {quote(key)}{for_user(user)}")
    return [await version(sources, each) for each in versions]


async def undo_change(
    manager: LLMMemoryManager, sources: Sources, key: str, kind: Any, user: str | None
) -> dict[str, Any]:
    """Undo the last change of a memory, and return what is current now, and what no longer is.

    Raises:
        CommandError: There is no change.
    """
    before = _current(await manager.history(key, kind))
    restored = await manager.undo(key, kind)
    after = _current(await manager.history(key, kind))
    gone = next((each for name, each in before.items() if after.get(name) != each), None)
    if restored is None and gone is None:
        raise CommandError(f"no change of {quote(key)} to undo{for_user(user)}")
    return {
        "user": user,
        "key": key,
        "current": None if restored is None else await version(sources, restored),
        "taken_back": None if gone is None else await version(sources, gone),
    }


def _current(versions: list[Memory]) -> dict[str, Memory]:
    return {each.type: each for each in versions if "superseded_at" not in each.metadata}


async def runs_of(
    backend: Backend,
    manager: LLMMemoryManager,
    thread: str | None,
    user: str | None,
    limit: int,
) -> tuple[str | None, list[SeenRun]]:
    """Return the user of a thread, and what the model saw in its newest runs.

    Args:
        backend: The database.
        manager: The manager of the memories without a user.
        thread: The thread; `None`: all threads.
        user: The user; `None`: the one of the thread's newest checkpoint, if it has one.
        limit: At most this many runs.
    """
    if user is None and thread is not None:
        # A provider may have no threads.
        with suppress(ConfigurationError):
            name = await find_thread(backend.checkpointer, thread)
            newest = await backend.checkpointer.list_with_metadata(name, 1)
            named = [info.metadata.get("user_id") for info in newest]
            user = next((each for each in named if isinstance(each, str)), None)
    scoped = manager if user is None else manager.for_user(user)
    # A run inside of LangGraph is recorded under LangGraph's id of its thread.
    place = Place.named(thread or "")
    return user, await scoped.saw(place.thread_id if place else thread, limit=limit)


async def erased(report: ForgetReport, store: BaseStore | None = None) -> dict[str, Any]:
    """Return a report of `forget` as JSON; with a store, with the contents that are still there."""
    memories = [{**asdict(each), "namespace": list(each.namespace)} for each in report.memories]
    items = [{"namespace": list(space), "key": key} for space, key in report.items]
    if store is not None:
        manager = open_manager(store, report.namespace)
        for each in memories:
            each["contents"] = await _contents(manager, each)
        for (space, key), item in zip(report.items, items, strict=True):
            item["value"] = await store.get(space, key)
    return {
        **asdict(report),
        "namespace": list(report.namespace),
        "memories": memories,
        "items": items,
        "kept": [{"namespace": list(space), "reason": why} for space, why in report.kept],
    }


async def _contents(manager: LLMMemoryManager, memory: dict[str, Any]) -> list[str]:
    """Return the contents of the versions that a report names."""
    scoped = manager.scoped(tuple(memory["namespace"]))
    return [
        each.content
        for each in await scoped.history(memory["key"], memory["type"])
        if each.metadata.get("sequence") in memory["past"]
        or (memory["is_current"] and "superseded_at" not in each.metadata)
    ]
