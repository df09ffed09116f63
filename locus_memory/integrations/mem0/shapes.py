"""The shapes of mem0: ids, messages, metadata and rows; pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import timedelta
from hashlib import blake2b, md5
from typing import Any, Final, NamedTuple
from uuid import NAMESPACE_OID, UUID, uuid4, uuid5

from locus_memory._internal.quoting import quote
from locus_memory.errors import InvalidArgumentError
from locus_memory.memory.extraction.thread import text_in
from locus_memory.memory.forms import ROLES
from locus_memory.memory.ledger.likeness import same_content
from locus_memory.memory.ledger.revision import MANAGED
from locus_memory.memory.ledger.wording import ending_of
from locus_memory.memory.models import EXPIRES_AT, FIXED, ORIGIN, Memory, MemoryType, Origin
from locus_memory.memory.moments import read_moment
from locus_memory.memory.scope import Scope
from locus_memory.memory.validity import VALIDITY, said_at
from locus_memory.store.encoding import encode_namespace

__all__ = [
    "ENTITIES",
    "PART",
    "Said",
    "Slot",
    "change_of",
    "changes_of",
    "entities",
    "literal",
    "mark_of",
    "merged",
    "part_of",
    "path_of",
    "row",
    "said_in",
    "told_by",
]

ENTITIES: Final = ("user_id", "agent_id", "run_id")
PART: Final = ENTITIES[1:]
"""The ids that are metadata of a memory."""
_BESIDE: Final = (*PART, "actor_id", "role")
"""The metadata that stand beside `metadata` in a row."""

_APART: Final = "mem0"
"""The name in a memory's metadata of the caller's metadata whose names mean something here."""

_OWN: Final = MANAGED | {
    *VALIDITY,
    *("thread_id", "message_ids", "extracted_at", "extractor", "importance", "fact_id", "fields"),
    *(ORIGIN, EXPIRES_AT, FIXED, _APART),
}
_FACT: Final = re.compile(r"fact:([0-9a-f]{32})")


class Slot(NamedTuple):
    """The slot of a memory: its user, the scope, the type and the key."""

    user: str | None
    scope: Scope
    kind: MemoryType
    key: str

    @property
    def id(self) -> str:
        """The UUID of all versions of the memory; that in its key, if there is one."""
        stated = _FACT.fullmatch(self.key) if self.kind is MemoryType.USER else None
        name = encode_namespace((*self.scope.namespace, self.kind.value, self.key))
        return str(uuid5(NAMESPACE_OID, name) if stated is None else UUID(stated[1]))


class Said(NamedTuple):
    """A message."""

    role: str
    content: str
    name: str | None = None

    @property
    def origin(self) -> Origin:
        """Who told what the message says; of an unknown role, another system."""
        role = ROLES.get(self.role)
        return next((each for each in Origin if each == role), Origin.IMPORT)


def said_in(messages: object) -> list[Said]:
    """Return messages without the system's and those without a text; a text is one of the user.

    Raises:
        InvalidArgumentError: They are not messages.
    """
    if isinstance(messages, str):
        messages = {"role": "user", "content": messages}
    listed: object = [messages] if isinstance(messages, Mapping) else messages
    if not isinstance(listed, list | tuple):
        raise InvalidArgumentError(f"messages are a text, a dict or a list, not {quote(messages)}")
    for number, each in enumerate(listed):
        has_role = isinstance(each, Mapping) and each.get("role") is not None
        if not has_role or each.keys().isdisjoint(("content", "tool_calls")):
            raise InvalidArgumentError(f"messages[{number}] is a dict with a role and a content")
    found = (
        Said(str(each["role"]), _text_of(each.get("content")), each.get("name")) for each in listed
    )
    return [each for each in found if each.role != "system" and each.content.strip()]


def _text_of(content: object) -> str:
    return text_in(content if isinstance(content, list | tuple) else [content])


def entities(given: Mapping[str, Any]) -> dict[str, str]:
    """Return the ids of users, agents and runs among some fields, as texts.

    Raises:
        InvalidArgumentError: One is empty, or has white space.
    """
    found = {name: str(given[name]).strip() for name in ENTITIES if given.get(name) is not None}
    for name, value in found.items():
        if len(value.split()) != 1:
            raise InvalidArgumentError(f"{name} is a text without white space, not {quote(value)}")
    return found


def part_of(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return the agent and the run of a memory's metadata."""
    return {name: metadata[name] for name in PART if metadata.get(name) is not None}


def mark_of(part: Mapping[str, Any]) -> str:
    """Return the end of the keys of an agent or a run whose plain keys another one has."""
    name = repr(sorted(part.items())).encode("utf-8", "replace")
    return f"#{blake2b(name, digest_size=4).hexdigest()}"


def told_by(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return a caller's metadata as a memory has them; they set no id."""
    mine = {name: each for name, each in metadata.items() if name not in (*ENTITIES, "actor_id")}
    apart = {name: mine.pop(name) for name in _OWN & mine.keys()}
    return {**mine, **({_APART: apart} if apart else {})}


def merged(known: Mapping[str, Any], told: Mapping[str, Any]) -> dict[str, Any]:
    """Return the metadata of a memory with more of them, as `told_by` returns them."""
    apart = {**known.get(_APART, {}), **told.get(_APART, {})}
    return {**known, **told, **({_APART: apart} if apart else {})}


def literal(said: Said, told: Mapping[str, Any]) -> Memory:
    """Return a message as a memory."""
    actor = {"actor_id": said.name} if said.name else {}
    metadata = {**told, **actor, "role": said.role, ORIGIN: said.origin.value}
    return Memory(MemoryType.USER, f"fact:{uuid4().hex}", said.content, metadata)


def path_of(name: str) -> str:
    """Return the field of a stored memory that has a caller's metadata of a name."""
    return f"metadata.{_APART}.{name}" if name in _OWN else f"metadata.{name}"


def row(slot: Slot, memory: Memory, created_at: str | None) -> dict[str, Any]:
    """Return a memory as mem0 returns it."""
    told, apart = memory.metadata, memory.metadata.get(_APART, {})
    own = {name: each for name, each in told.items() if name not in (*_OWN, *_BESIDE)} | apart
    own.pop("created_at", None)
    until = read_moment(told.get(EXPIRES_AT))
    last = None if until is None else (until - timedelta(microseconds=1)).date().isoformat()
    return {
        "id": slot.id,
        "memory": memory.content,
        "hash": md5(memory.content.encode(), usedforsecurity=False).hexdigest(),
        "metadata": own or None,
        "created_at": apart.get("created_at") or created_at,
        "updated_at": said_at(memory) or None,
        **({} if slot.user is None else {"user_id": slot.user}),
        **{name: told[name] for name in _BESIDE if told.get(name) is not None},
        **({} if last is None else {"expiration_date": last}),
    }


def change_of(slot: Slot, old: Memory | None, new: Memory | None) -> dict[str, Any] | None:
    """Return what `add` did to a memory, as mem0 returns it; `None`: there is and was none."""
    told = new or old
    if told is None:
        return None
    is_same = old is not None and new is not None and same_content(old.content, new.content)
    event = "ADD" if old is None else "DELETE" if new is None else "NONE" if is_same else "UPDATE"
    before: dict[str, Any] = {}
    if old is not None and event == "UPDATE":
        before["previous_memory"] = old.content
    if "role" in told.metadata:
        before |= {name: told.metadata.get(name) for name in ("actor_id", "role")}
    return {"id": slot.id, "memory": told.content, "event": event, **before}


def changes_of(slot: Slot, versions: Iterable[Memory]) -> list[dict[str, Any]]:
    """Return the history of a memory as mem0 returns it, the oldest change first.

    Args:
        slot: Its slot.
        versions: Its versions; one that was undone counts as never made.
    """
    old: str | None = None
    found: list[dict[str, Any]] = []
    kept = [each for each in versions if ending_of(each) != "undo"]
    for each in sorted(kept, key=lambda each: each.metadata.get("sequence") or 0):
        told = each.metadata
        event, at = "ADD" if old is None else "UPDATE", said_at(each) or None
        steps: list[tuple[str, str | None, str | None, Any]] = [(event, old, each.content, at)]
        if is_gone := ending_of(each) in ("delete", "evict"):
            steps.append(("DELETE", each.content, None, told.get("superseded_at")))
        for event, before, after, at in steps:
            created_at = found[0]["created_at"] if found else at
            found.append(
                {
                    "id": str(uuid5(NAMESPACE_OID, f"{slot.id}:{told.get('sequence')}:{event}")),
                    "memory_id": slot.id,
                    "old_memory": before,
                    "new_memory": after,
                    "event": event,
                    "created_at": created_at,
                    "updated_at": at,
                    "is_deleted": event == "DELETE",
                    "actor_id": told.get("actor_id"),
                    "role": told.get("role"),
                }
            )
        old = None if is_gone else each.content
    return found
