"""The mapping of LangGraph's threads to threads of the checkpointer.

Each pair of a thread id and a checkpoint namespace has one thread of the checkpointer for its
checkpoints and, once there are separate pending writes, another one for those. Their names are
JSON, so that an id may hold any character and no two threads are ever mixed.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, Self, cast

if TYPE_CHECKING:
    # The names of the threads are also read without LangGraph.
    from langchain_core.runnables import RunnableConfig

    from locus_memory.checkpoint.base import BaseCheckpointer, CheckpointInfo

__all__ = ["WINDOW", "Place", "all_heads", "places", "prefix_of"]

_SCHEME = "langgraph:"
_WRITES = "writes"
_PAGE = 500

WINDOW: Final = 8
"""How many of the newest records are read first."""


@dataclass(frozen=True, slots=True)
class Place:
    """A LangGraph thread's checkpoints in one namespace.

    Attributes:
        thread_id: LangGraph's thread id.
        namespace: LangGraph's `checkpoint_ns`; empty for the graph itself.
        name: The thread of its checkpoints.
        writes: The thread of its pending writes.
    """

    thread_id: str
    namespace: str
    name: str
    writes: str

    @classmethod
    def at(cls, thread_id: str, namespace: str) -> Self:
        """Return the place of a thread id and a namespace."""
        name, writes = _names(thread_id, namespace)
        return cls(thread_id, namespace, name, writes)

    @classmethod
    def of(cls, config: RunnableConfig) -> Self:
        """Return the place that a config names."""
        configurable = config.get("configurable", {})
        return cls.at(str(configurable["thread_id"]), configurable.get("checkpoint_ns") or "")

    @classmethod
    def named(cls, name: str) -> Self | None:
        """Return the place of a thread of the checkpointer; `None` if it is not LangGraph's."""
        if not name.startswith(f"{_SCHEME}["):
            return None
        try:
            parts = cast("list[Any]", json.loads(name.removeprefix(_SCHEME)))
        except (ValueError, RecursionError):
            return None
        if len(parts) < 2 or not all(isinstance(part, str) for part in parts):  # noqa: PLR2004 - an id and a namespace
            return None
        place = cls.at(parts[0], parts[1])
        return place if name in (place.name, place.writes) else None

    def config(self, checkpoint_id: str) -> RunnableConfig:
        """Return the config that names a checkpoint here."""
        configurable: dict[str, Any] = {
            "thread_id": self.thread_id,
            "checkpoint_ns": self.namespace,
            "checkpoint_id": checkpoint_id,
        }
        return {"configurable": configurable}


@lru_cache(maxsize=1024)
def _names(thread_id: str, namespace: str) -> tuple[str, str]:
    return _name(thread_id, namespace), _name(thread_id, namespace, _WRITES)


def _name(*parts: str) -> str:
    return _SCHEME + json.dumps(parts, ensure_ascii=False, separators=(",", ":"))


def prefix_of(thread_id: str | None) -> str:
    """Return the prefix of exactly the names of the threads of one LangGraph thread.

    `None` means all LangGraph threads.
    """
    if thread_id is None:
        return f"{_SCHEME}["
    return _name(thread_id)[:-1] + ","


async def places(checkpointer: BaseCheckpointer, thread_id: str | None) -> list[Place]:
    """Return the places where a LangGraph thread, or any, has checkpoints or writes."""
    found: dict[Place, None] = {}
    prefix, after = prefix_of(thread_id), None
    while names := await checkpointer.list_threads(_PAGE, prefix=prefix, after=after):
        after = names[-1]
        for name in names:
            place = Place.named(name)
            if place is not None:
                found[place] = None
    return list(found)


async def all_heads(
    checkpointer: BaseCheckpointer, name: str, until: str | None = None
) -> list[CheckpointInfo]:
    """Return the information on the records of a thread, newest first, read page by page.

    Args:
        checkpointer: The checkpointer of the library that holds them.
        name: The thread of the checkpointer.
        until: The pages after this record are not read.
    """
    found: list[CheckpointInfo] = []
    size = _PAGE if until is None else WINDOW
    before: str | None = None
    while page := await checkpointer.list_with_metadata(name, size, before=before):
        found += page
        before = page[-1].checkpoint_id
        if len(page) < size or any(info.checkpoint_id == until for info in page):
            break
        size = _PAGE
    return found
