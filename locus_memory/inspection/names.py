"""The notation of namespaces and checkpoints, and what a name leads to.

A namespace is its labels joined by `/`, or a JSON list of labels, such as `["a/b", "c"]`, which a
label with a `/` needs.

A checkpoint is `THREAD` (the newest), `THREAD@ID` or `THREAD@N`, where 1 is the oldest and -1
the newest.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import orjson

from locus_memory._internal.providers.construction import did_you_mean
from locus_memory._internal.running.paging import paged
from locus_memory.errors import CheckpointNotFoundError
from locus_memory.inspection.errors import UsageError
from locus_memory.integrations.langgraph.threads import Place, prefix_of

if TYPE_CHECKING:
    from locus_memory.backends.base import Backend
    from locus_memory.checkpoint.base import BaseCheckpointer, CheckpointInfo
    from locus_memory.store.base import BaseStore

__all__ = [
    "COMPARED",
    "Labels",
    "all_checkpoints",
    "checkpoints_back",
    "find_checkpoint",
    "find_fork_point",
    "find_reference",
    "find_thread",
    "format_namespace",
    "hides",
    "namespaces_below",
    "naming_nearest",
    "near",
    "nearest",
    "nearest_thread",
    "parse_namespace",
]

Labels = tuple[str, ...]

_PAGE = 500
_ALL = 2**31 - 1
COMPARED = 1_000
"""How many names a mistyped one is compared with: those that begin alike, and the first ones."""


def parse_namespace(text: str) -> Labels:
    """Return the labels of a namespace.

    Raises:
        UsageError: A label is empty, or the JSON is not a list of strings.
    """
    labels = _json_labels(text) if text.startswith("[") else text.split("/")
    if not labels or not all(labels):
        raise UsageError(
            f"invalid namespace {text!r}: give labels joined by '/', none of them empty"
        )
    return tuple(labels)


def _json_labels(text: str) -> list[str]:
    try:
        labels = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise UsageError(f"namespace {text!r} starts with '[' but is not JSON: {error}") from None
    if not all(isinstance(label, str) for label in labels):
        raise UsageError(f"invalid namespace {text!r}: the labels of a JSON list are strings")
    return list(labels)


def format_namespace(namespace: tuple[str, ...]) -> str:
    """Return the notation that `parse_namespace` reads."""
    text = "/".join(namespace)
    is_plain = not text.startswith("[") and text.count("/") == len(namespace) - 1
    return text if is_plain else orjson.dumps(namespace).decode()


async def checkpoints_back(
    checkpointer: BaseCheckpointer, thread_id: str
) -> AsyncIterator[CheckpointInfo]:
    """Yield the checkpoints of a thread, the newest first."""
    before = None
    while True:
        page = await checkpointer.list_with_metadata(thread_id, _PAGE, before=before)
        for info in page:
            yield info
        if len(page) < _PAGE:
            return
        before = page[-1].checkpoint_id


async def all_checkpoints(checkpointer: BaseCheckpointer, thread_id: str) -> list[CheckpointInfo]:
    """Return every checkpoint of a thread, oldest first.

    Raises:
        CheckpointNotFoundError: The thread has no checkpoints.
    """
    found = [info async for info in checkpoints_back(checkpointer, thread_id)]
    if not found:
        raise CheckpointNotFoundError(thread_id)
    return found[::-1]


async def find_thread(checkpointer: BaseCheckpointer, name: str) -> str:
    """Return the thread with this name, or else the thread of LangGraph with this id.

    If neither exists, the name is returned unchanged.
    """
    if await checkpointer.exists(name):
        return name
    other = Place.at(name, "").name
    return other if await checkpointer.exists(other) else name


async def find_reference(checkpointer: BaseCheckpointer, text: str) -> tuple[str, str]:
    """Return the thread and checkpoint that `THREAD`, `THREAD@ID` or `THREAD@N` names.

    Raises:
        CheckpointNotFoundError: There is no such thread or checkpoint.
    """
    thread_id, separator, name = text.rpartition("@")
    # Try the whole text first: the name of a thread may hold an @.
    whole = await find_thread(checkpointer, text)
    if not separator or not thread_id or not name or await checkpointer.exists(whole):
        return whole, await find_checkpoint(checkpointer, whole, None)
    thread_id = await find_thread(checkpointer, thread_id)
    return thread_id, await find_checkpoint(checkpointer, thread_id, name)


async def find_checkpoint(checkpointer: BaseCheckpointer, thread_id: str, name: str | None) -> str:
    """Return the id of a checkpoint, given its id or place; `None` means the newest.

    Raises:
        CheckpointNotFoundError: There is no such thread or checkpoint.
    """
    if name is None:
        newest = await checkpointer.list_checkpoints(thread_id, 1)
        if not newest:
            raise CheckpointNotFoundError(thread_id)
        return newest[0]
    if await checkpointer.exists(thread_id, name):
        return name
    place = int(name) if re.fullmatch(r"-?[0-9]{1,9}", name) else 0
    # The newest come first, without their metadata.
    ids = await checkpointer.list_checkpoints(thread_id, _ALL if place > 0 else max(1, -place))
    if not ids or not 1 <= abs(place) <= len(ids):
        raise CheckpointNotFoundError(thread_id, name if ids else None)
    return ids[-place] if place > 0 else ids[-place - 1]


async def find_fork_point(checkpointer: BaseCheckpointer, thread_id: str) -> tuple[str, str] | None:
    """Return the thread and checkpoint that a thread was forked from, or `None`.

    The newest checkpoint that names a source decides: an older one may stem from an earlier
    fork.
    """
    async for info in checkpoints_back(checkpointer, thread_id):
        if info.forked_from is not None:
            return info.forked_from
    return None


async def namespaces_below(
    store: BaseStore, prefix: Labels, max_depth: int | None = None, after: Labels | None = None
) -> AsyncIterator[Labels]:
    """Yield all namespaces that begin with the labels of a prefix; `"*"` is a label like others."""
    found = paged(
        lambda last: store.list_namespaces(
            prefix, _PAGE, max_depth=max_depth, after=after if last is None else last
        )
    )
    async for each in found:
        if each[: len(prefix)] == prefix:
            yield each


def near(name: str, known: Iterable[str]) -> str:
    """Return the end of an error about a name that is not there: the nearest one, or nothing.

    A name that differs only in case, accents or a missing end is near.
    """
    plain = {_plain(each): each for each in known}
    asked = _plain(name)
    longer = [each for each in plain if asked and each.startswith(asked)]
    if longer:
        return f": did you mean {plain[min(longer, key=len)]!r}?"
    return did_you_mean(name, plain.values()).rstrip(".")


def _plain(name: str) -> str:
    letters = unicodedata.normalize("NFKD", name.casefold())
    return "".join(each for each in letters if not unicodedata.combining(each))


async def nearest(name: str, listed: Callable[..., Awaitable[Sequence[str]]]) -> str:
    """Return the same among names that are listed by page, such as keys.

    Args:
        name: The name that is not there.
        listed: Takes a number and a `prefix`; returns that many of the first names.
    """
    alike = await listed(COMPARED, prefix=name[:1])
    return near(name, [*alike, *await listed(COMPARED)])


async def nearest_thread(checkpointer: BaseCheckpointer, name: str) -> str:
    """Return the same of a thread; one of LangGraph has its plain id."""

    async def listed(count: int, prefix: str | None = None) -> list[str]:
        names = await checkpointer.list_threads(count, prefix=prefix)
        if prefix is not None:
            ours = await checkpointer.list_threads(count, prefix=prefix_of(None))
            names += [place.thread_id for each in ours if (place := Place.named(each))]
        return names

    return await nearest(name, listed)


@asynccontextmanager
async def naming_nearest(backend: Backend) -> AsyncGenerator[None]:
    """Add the nearest thread to the error about one that is not there."""
    try:
        yield
    except CheckpointNotFoundError as error:
        if error.checkpoint_id is None:
            told = await nearest_thread(backend.checkpointer, error.thread_id)
            error.args = (f"{error}{told}",)
        raise


def hides(name: str) -> bool:
    """Return whether a thread holds only the pending writes of a thread of LangGraph."""
    place = Place.named(name)
    return place is not None and name == place.writes
