"""The memories that `get_all` of mem0 returns, as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, Final

from locus_memory._internal.quoting import quote
from locus_memory.errors import InvalidArgumentError
from locus_memory.memory.models import EXPIRES_AT
from locus_memory.memory.moments import read_moment
from locus_memory.store.item import check_identifier

__all__ = ["Exported", "expiry", "read_export"]

_KEPT: Final = ("agent_id", "run_id", "actor_id", "role", "attributed_to", "categories")
"""The fields beside `metadata` that become metadata."""


@dataclass(frozen=True, slots=True)
class Exported:
    """A memory of an export.

    Attributes:
        id: Its id.
        content: The fact.
        user: Its user; `None`: it has none, as the memories of an agent or of a run.
        at: The moment of its last change.
        metadata: Its other fields.
    """

    id: str
    content: str
    user: str | None = None
    at: datetime | None = None
    metadata: dict[str, Any] = field(default_factory=dict[str, Any])


def read_export(value: object) -> list[Exported]:
    """Return the memories of an object with `results`, or of a list.

    Raises:
        InvalidArgumentError: It is neither, or an entry is no memory; the error tells which.
    """
    listed: object = value.get("results") if isinstance(value, Mapping) else value
    if not isinstance(listed, list):
        raise InvalidArgumentError("it is neither a list of memories nor an object with results")
    found: dict[str, Exported] = {}
    for place, entry in enumerate(listed, 1):
        try:
            memory = _memory(entry)
        except InvalidArgumentError as error:
            raise InvalidArgumentError(f"memory {place}: {error}") from None
        if found.setdefault(memory.id, memory) != memory:
            raise InvalidArgumentError(f"memory {place}: another one has the id {memory.id}")
    return list(found.values())


def _memory(entry: object) -> Exported:
    if not isinstance(entry, Mapping):
        raise InvalidArgumentError("it is no object")
    texts = {name: _text(entry, name) for name in ("id", "memory", "user_id")}
    if not texts["id"] or texts["memory"] is None:
        raise InvalidArgumentError("it has no id, or no memory")
    user = texts["user_id"]
    if user is not None:
        check_identifier(user, "user_id")
    return Exported(texts["id"], texts["memory"], user, _moment(entry), _metadata(entry))


def _text(entry: Mapping[Any, Any], name: str) -> str | None:
    value = entry.get(name)
    if value is not None and not isinstance(value, str):
        raise InvalidArgumentError(f"its {name} is a text, not {quote(value)}")
    return value


def _moment(entry: Mapping[Any, Any]) -> datetime | None:
    for name in ("updated_at", "created_at"):
        if (stated := entry.get(name)) is not None:
            moment = read_moment(stated)
            if moment is None:
                raise InvalidArgumentError(f"its {name} is ISO 8601, not {quote(stated)}")
            return moment
    return None


def _metadata(entry: Mapping[Any, Any]) -> dict[str, Any]:
    given: object = entry.get("metadata")
    if given is not None and not isinstance(given, dict):
        raise InvalidArgumentError("its metadata is an object")
    kept = {name: entry[name] for name in _KEPT if entry.get(name) is not None}
    return {**(given or {}), **kept, **expiry(entry.get("expiration_date"))}


def expiry(stated: object) -> dict[str, str]:
    """Return the moment of an expiry: mem0 returns a memory until the end of that day, in UTC."""
    if stated is None:
        return {}
    try:
        last = date.fromisoformat(str(stated)[:10])
    except ValueError:
        raise InvalidArgumentError(f"its expiration_date is a day, not {quote(stated)}") from None
    until = datetime.combine(last, time(), UTC) + timedelta(days=1)
    return {EXPIRES_AT: until.isoformat()}
