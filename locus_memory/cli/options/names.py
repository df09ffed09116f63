r"""How namespaces and checkpoints are written on the command line.

A namespace is its labels joined by `/`. A backslash takes the next character as it is, so
`a\/b` is one label; what starts with `[` is a JSON list instead: `["a/b", "c"]`.

A checkpoint is `THREAD` (the newest), `THREAD@ID`, or `THREAD@N`, counted from 1 for the
oldest, or from -1 for the newest.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import orjson

from locus_memory.cli.conversations.foreign_threads import Foreign
from locus_memory.cli.printing.outcome import UsageError
from locus_memory.errors import CheckpointNotFoundError

if TYPE_CHECKING:
    from locus_memory.checkpoint.base import BaseCheckpointer, CheckpointInfo
    from locus_memory.store.base import BaseStore

__all__ = [
    "Labels",
    "all_checkpoints",
    "all_namespaces",
    "find_checkpoint",
    "find_fork_point",
    "find_reference",
    "find_thread",
    "format_namespace",
    "parse_namespace",
]

Labels = tuple[str, ...]

_PAGE = 500
_PART = re.compile(r"\\(.)|(/)|([^\\/]+)", re.DOTALL)


def parse_namespace(text: str) -> Labels:
    """Return the labels of a namespace.

    Raises:
        UsageError: A label is empty, or it is not a JSON list of strings.
    """
    labels = _json_labels(text) if text.startswith("[") else _split(text)
    if not labels or not all(labels):
        raise UsageError(f"a namespace is labels joined by '/', none empty, not {text!r}")
    return tuple(labels)


def _split(text: str) -> list[str]:
    if (len(text) - len(text.rstrip("\\"))) % 2:
        raise UsageError(f"a backslash ends the namespace {text!r}")
    labels = [""]
    for escaped, slash, plain in _PART.findall(text):
        if slash:
            labels.append("")
        else:
            labels[-1] += escaped or plain
    return labels


def _json_labels(text: str) -> list[str]:
    try:
        labels = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise UsageError(f"a namespace that starts with '[' is a JSON list: {error}") from None
    if not all(isinstance(label, str) for label in labels):
        raise UsageError("a namespace's JSON list holds strings only")
    return list(labels)


def format_namespace(namespace: tuple[str, ...]) -> str:
    """Return what `parse_namespace` reads."""
    text = "/".join(re.sub(r"([\\/])", r"\\\1", label) for label in namespace)
    return "\\" + text if text.startswith("[") else text


async def all_checkpoints(checkpointer: BaseCheckpointer, thread_id: str) -> list[CheckpointInfo]:
    """Return every checkpoint of a thread, oldest first.

    Raises:
        CheckpointNotFoundError: There is none.
    """
    found = page = await checkpointer.list_with_metadata(thread_id, _PAGE)
    while len(page) == _PAGE:
        before = page[-1].checkpoint_id
        page = await checkpointer.list_with_metadata(thread_id, _PAGE, before=before)
        found = found + page
    if not found:
        raise CheckpointNotFoundError(thread_id)
    return found[::-1]


async def find_thread(checkpointer: BaseCheckpointer, name: str) -> str:
    """Return the thread of a name, or else the one of LangGraph's thread of that id.

    A name of which there is no thread is returned as it is.
    """
    if await checkpointer.exists(name):
        return name
    other = Foreign.name_of(name)
    return other if await checkpointer.exists(other) else name


async def find_reference(checkpointer: BaseCheckpointer, text: str) -> tuple[str, str]:
    """Return the thread and checkpoint that `THREAD`, `THREAD@ID` or `THREAD@N` names.

    Raises:
        CheckpointNotFoundError: There is no such thread or checkpoint.
    """
    thread_id, separator, name = text.rpartition("@")
    # The whole text comes first: a thread's own name may hold an @.
    whole = await find_thread(checkpointer, text)
    if not separator or not thread_id or not name or await checkpointer.exists(whole):
        return whole, await find_checkpoint(checkpointer, whole, None)
    thread_id = await find_thread(checkpointer, thread_id)
    return thread_id, await find_checkpoint(checkpointer, thread_id, name)


async def find_checkpoint(checkpointer: BaseCheckpointer, thread_id: str, name: str | None) -> str:
    """Return the id of a thread's checkpoint, given its id or place; `None`: the newest.

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
    ids = [info.checkpoint_id for info in await all_checkpoints(checkpointer, thread_id)]
    place = int(name) if re.fullmatch(r"-?[0-9]{1,9}", name) else 0
    if not 1 <= abs(place) <= len(ids):
        raise CheckpointNotFoundError(thread_id, name)
    return ids[place - 1] if place > 0 else ids[place]


async def find_fork_point(checkpointer: BaseCheckpointer, thread_id: str) -> tuple[str, str] | None:
    """Return the thread and checkpoint that a thread was forked from, or `None`.

    It is what the newest checkpoint that names one says: an older one may be of a thread that
    the other was forked from in its turn.
    """
    page = await checkpointer.list_with_metadata(thread_id, _PAGE)
    while page:
        for info in page:
            if info.forked_from is not None:
                return info.forked_from
        if len(page) < _PAGE:
            break
        before = page[-1].checkpoint_id
        page = await checkpointer.list_with_metadata(thread_id, _PAGE, before=before)
    return None


async def all_namespaces(
    store: BaseStore, prefix: Labels, max_depth: int | None = None
) -> list[Labels]:
    """Return the namespaces below a prefix, however many; a `"*"` in it matches any label."""
    found: list[Labels] = []
    while page := await store.list_namespaces(
        prefix, _PAGE, max_depth=max_depth, after=found[-1] if found else None
    ):
        found += page
    return found
