"""The tools for memories and earlier conversations, each bound to one caller."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from pydantic import BeforeValidator, Field

from locus_memory._internal.neutral import neutralise
from locus_memory._internal.quoting import quote
from locus_memory.agent.toolkit.scope import AsOf, At, ValidFrom, ValidTo
from locus_memory.errors import InvalidArgumentError
from locus_memory.events import emit
from locus_memory.integrations.reading import DAMAGE, readable
from locus_memory.memory.extraction.extraction import check_sentence
from locus_memory.memory.ledger.likeness import same_content
from locus_memory.memory.models import (
    ORIGIN,
    Memory,
    MemoryType,
    Origin,
    OriginName,
    as_origins,
    is_expired,
    origin_of,
    refusal,
    teller,
)
from locus_memory.memory.moments import read_moment
from locus_memory.memory.phrases.naming import named_memory
from locus_memory.memory.providers.fence import fence
from locus_memory.memory.scope import Scope, split_key
from locus_memory.memory.secrets.detection import find_secret
from locus_memory.memory.validity import VALID_FROM, VALID_TO, said_at, stated, validity_words
from locus_memory.store.base import BaseStore
from locus_memory.store.item import StoreItem

if TYPE_CHECKING:
    from locus_memory.memory.manager import LLMMemoryManager

__all__ = ["conversation_functions", "memory_functions"]

_LONGEST: Final = 2_000
_SHOWN: Final = 1_000
_DAY: Final = 10
_NO_KEY: Final = frozenset(("", "null", "none", "undefined"))

Kind = Literal["user", "feedback", "project", "reference"]
Query = Annotated[
    str, Field(max_length=_LONGEST, description="a question, or the subject in a few words")
]
Limit = Annotated[int, Field(ge=1, le=50, description="how many at most")]
Origins = Annotated[
    list[OriginName] | None,
    Field(description="only what these told; by default, all"),
]
Name = Annotated[
    str,
    Field(max_length=500, description="the name that an answer shows, such as user:home"),
]
Key = Annotated[
    str,
    Field(
        max_length=80,
        pattern=r"^\w[\w .-]*$",
        description="a short name of the fact, such as home; the same key replaces it",
    ),
]


def _or_none(key: object) -> object:
    """Return a key; `None` for what some hosts send in place of an argument that is left out."""
    return None if isinstance(key, str) and key.strip().casefold() in _NO_KEY else key


def memory_functions(manager: LLMMemoryManager, store: BaseStore) -> list[Callable[..., Any]]:
    """Return the functions of the tools for the memories of a caller.

    Args:
        manager: The manager, bound to the caller.
        store: Its store.
    """
    return [*_writing(manager), *_reading(manager, store)]


def _writing(manager: LLMMemoryManager) -> list[Callable[..., Any]]:
    async def remember(
        content: Annotated[
            str, Field(max_length=_LONGEST, description="one fact, a full sentence")
        ],
        key: Annotated[Key | None, BeforeValidator(_or_none)] = None,
        type: Annotated[  # noqa: A002 - the field's word
            Kind | None,
            Field(description="user: about the user; feedback: a rule; project; reference"),
        ] = None,
        valid_from: ValidFrom = None,
        valid_to: ValidTo = None,
    ) -> str:
        """Keep one fact beyond this conversation. A fact with a known key replaces the old one."""
        check_sentence(content)
        if key is not None and find_secret(key) is not None:
            raise InvalidArgumentError("the key looks like a secret, and is not kept")
        told: dict[str, Any] = {
            "extractor": "mcp",
            ORIGIN: Origin.ASSISTANT.value,
            VALID_FROM: valid_from or None,
            VALID_TO: valid_to or None,
        }
        memory = await named_memory(content, key, type, told)
        saved = await manager.save(memory)
        if not saved:
            known = await manager.get(_name(memory))
            refused = known and refusal(known, memory.type, Origin.ASSISTANT)
            if known and refused and not same_content(known.content, memory.content):
                raise InvalidArgumentError(refused)
            return f"{_name(memory)}: already known"
        versions = await manager.history(saved[0].key, saved[0].type)
        earlier = "; memory_history shows its earlier versions" if len(versions) > 1 else ""
        return f"{_name(saved[0])}: remembered{earlier}"

    async def forget_memory(name: Name) -> str:
        """Drop a memory. undo_memory takes it back: only a person erases a memory for good."""
        memory = await _current(manager, name)
        await manager.delete(_name_of(memory), origin=Origin.ASSISTANT)
        return f"{_name(memory)}: forgotten; undo_memory takes it back"

    async def undo_memory(name: Name) -> str:
        """Take back the last change of a memory; a second call takes back the one before."""
        kind, key = await _place(manager, name)
        before = await manager.history(key, kind)
        restored = await manager.undo(key, kind, origin=Origin.ASSISTANT)
        after = await manager.history(key, kind)
        if not before or (restored is not None and after == before):
            raise InvalidArgumentError(f"there is no change of {quote(name)} to undo")
        if restored is None:
            return f"{kind.value}:{neutralise(key)}: undone; nothing is remembered under it now"
        return fence(f"undone, now current:\n{_line(restored)}")

    return [remember, forget_memory, undo_memory]


def _reading(manager: LLMMemoryManager, store: BaseStore) -> list[Callable[..., Any]]:
    async def recall(
        query: Query,
        limit: Limit = 10,
        origins: Origins = None,
        as_of: AsOf = None,
        at: At = None,
    ) -> str:
        """Find what is remembered about a subject, the best match first."""
        then = {"as_of": as_of or None, "at": at or None}
        try:
            matching = await manager.search_memories(query, limit, origins=origins, **then)
            found = [memory for memory, _ in matching]
        except DAMAGE as error:
            if any(then.values()):
                raise
            emit("integrations.search_failed", error=error, namespace=list(manager.namespace))
            every, only = [each async for each in _all(manager, store, None)], as_origins(origins)
            found = [each for each in every if only is None or origin_of(each) in only][:limit]
        return _fenced(map(_line, found), "nothing is remembered about that")

    async def list_memories(
        type: Annotated[Kind | None, Field(description="only this type")] = None,  # noqa: A002 - the field's word
        limit: Limit = 50,
        offset: Annotated[int, Field(ge=0, description="how many to skip")] = 0,
        as_of: AsOf = None,
        at: At = None,
    ) -> str:
        """List what is remembered, by type and name."""
        then = manager.memories(type, as_of=as_of or None, at=at or None)
        found = [each async for each in (then if as_of or at else _all(manager, store, type))]
        lines = [_line(each) for each in found[offset : offset + limit]]
        left = len(found) - offset - len(lines)
        if left > 0:
            lines.append(f"({left} more: offset={offset + len(lines)})")
        return _fenced(lines, "nothing is remembered" if not found else "there are no more")

    async def memory_history(name: Name) -> str:
        """Show all versions of a memory, the newest first."""
        kind, key = await _place(manager, name)
        versions = await manager.history(key, kind)
        return _fenced(map(_version, versions), f"there is no memory {quote(name)}")

    return [recall, list_memories, memory_history]


def conversation_functions(manager: LLMMemoryManager) -> list[Callable[..., Any]]:
    """Return the function of the tool for earlier conversations of a caller."""

    async def search_conversations(
        query: Query,
        limit: Limit = 10,
        origins: Origins = None,
        as_of: AsOf = None,
        at: At = None,
    ) -> str:
        """Search earlier conversations: digests of sessions, and messages word for word."""
        choice: Any = {"origins": origins, "as_of": as_of or None, "at": at or None}
        episodes = await manager.search_episodes(query, limit, **choice)
        turns = await manager.search_transcript(query, limit, **choice)
        lines = [_said("digest", each.text, each.ended_at, each.session_id) for each, _ in episodes]
        for hit in turns:
            facts = hit.item.metadata
            # The text begins with the speaker.
            lines.append(_said("message", hit.text, facts.get("date"), facts.get("session")))
        return _fenced(lines, "no earlier conversation tells about that")

    return [search_conversations]


def _fenced(lines: Iterable[str], otherwise: str) -> str:
    return fence("\n".join(filter(None, lines))) or otherwise


def _name_of(memory: Memory) -> str:
    return f"{memory.type.value}:{memory.key}"


def _name(memory: Memory) -> str:
    return neutralise(_name_of(memory))


def _line(memory: Memory) -> str:
    """Return the line of a memory, with its name and who told it."""
    said = neutralise(memory.content[:_SHOWN]) or "(nothing visible)"
    cut = "..." if len(memory.content) > _SHOWN else ""
    told = f" ({teller(memory)})" if teller(memory) else ""
    since = read_moment(said_at(memory))
    day = f" [since {since.date()}]" if since else ""
    return f"- {_name(memory)}{told}: {said}{cut}{validity_words(stated(memory), said)}{day}"


def _version(memory: Memory) -> str:
    until = memory.metadata.get("superseded_at")
    ended = f" [until {neutralise(str(until)[:_DAY])}]" if until else " [current]"
    return f"{_line(memory)}{ended}"


def _said(what: Literal["digest", "message"], text: str, moment: object, session: object) -> str:
    where = ", ".join(neutralise(str(each)[:80]) for each in (str(moment)[:_DAY], session) if each)
    return f"- {what} ({where}): {neutralise(text[:_SHOWN])}"


async def _place(manager: LLMMemoryManager, name: str) -> tuple[MemoryType, str]:
    """Return the type and the key of a name, of a current memory or an earlier one.

    Raises:
        InvalidArgumentError: It is no name, and no id of a current memory.
    """
    named = split_key(name)
    if named is not None:
        return named
    memory = await _current(manager, name)
    return memory.type, memory.key


async def _current(manager: LLMMemoryManager, name: str) -> Memory:
    """Return a current memory.

    Raises:
        InvalidArgumentError: There is none.
    """
    memory = await manager.get(name)
    if memory is None:
        raise InvalidArgumentError(f"there is no memory {quote(name)}: list_memories shows names")
    return memory


async def _all(
    manager: LLMMemoryManager, store: BaseStore, kind: str | None
) -> AsyncIterator[Memory]:
    """Yield the current memories that can be read, by type and key."""
    now = datetime.now(UTC).isoformat()
    current = Scope(manager.namespace).current
    prefix = None if kind is None else f"{kind}:"
    async for _, memory in readable(store, current, _decoded, prefix=prefix):
        if not is_expired(memory, now):
            yield memory


def _decoded(item: StoreItem) -> Memory:
    """Return the memory of an item.

    Raises:
        InvalidArgumentError: It is none.
    """
    kind, key = split_key(item.key) or ("", "")
    return Memory.from_store_value({**item.value, "type": kind, "key": key})
