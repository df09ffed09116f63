"""Facts: memories as plain JSON objects, one a line, in a neutral file format; pure.

A fact has `id` (32 hexadecimal digits), `content`, `source`, `created_at` (ISO 8601) and
`created_ts` (seconds since the epoch). This library adds `type` and `key`. Every other field is
metadata of the memory, and metadata is written as such fields.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC
from typing import Any, Final
from uuid import NAMESPACE_OID, UUID, uuid5

from locus_memory._internal.quoting import quote
from locus_memory.errors import InvalidArgumentError
from locus_memory.memory.extraction.extraction import check_length
from locus_memory.memory.ledger.revision import MANAGED
from locus_memory.memory.models import LONGEST_CONTENT, Memory, MemoryType
from locus_memory.memory.moments import read_moment
from locus_memory.memory.scope import Scope
from locus_memory.memory.validity import VALID_FROM, bounds, moment_in, said_at, stated
from locus_memory.store.encoding import encode_namespace
from locus_memory.store.item import check_key

__all__ = ["Fact", "fact_of", "read_fact"]

_ID: Final = "fact_id"
_SOURCE: Final = "extractor"
_REST: Final = "metadata"
_FOREIGN: Final = "fields"
_OWN: Final = frozenset((*MANAGED, _ID, _SOURCE, _FOREIGN))
"""Names in a memory's metadata that mean something to this library."""

_FIELDS: Final = frozenset(("id", "content", "source", "created_at", "created_ts", "type", "key"))
_HEX: Final = re.compile(r"[0-9a-f]{8}(-?[0-9a-f]{4}){3}-?[0-9a-f]{12}")


@dataclass(frozen=True, slots=True)
class Fact:
    """A fact to write.

    Attributes:
        memory: The memory.
        said_at: The moment of the fact, in the format of `Ledger.now`; `None`: unknown.
        deleted: Whether the memory of its key was deleted at that moment.
    """

    memory: Memory
    said_at: str | None
    deleted: bool = False


def fact_of(memory: Memory, scope: Scope) -> dict[str, Any]:
    """Return a current memory as a fact.

    A memory that was no fact gets an id of its scope, type and key, so it is always the same.

    Args:
        memory: The memory.
        scope: The scope of the memory.
    """
    told, place = memory.metadata, (*scope.namespace, memory.type.value, memory.key)
    since = read_moment(said_at(memory))
    # The moment of a statement, which the ledger wrote, is that of the fact.
    names = _OWN | {VALID_FROM} if "sequence" in told and not stated(memory) else _OWN
    own = {name: value for name, value in told.items() if name not in names}
    taken = {name: value for name, value in own.items() if name in _FIELDS or name == _REST}
    foreign: object = told.get(_FOREIGN)
    fact = {
        "id": told.get(_ID) or uuid5(NAMESPACE_OID, encode_namespace(place)).hex,
        "content": memory.content,
        "source": str(told.get(_SOURCE) or ""),
        "created_at": None if since is None else since.isoformat(timespec="microseconds"),
        "created_ts": None if since is None else since.timestamp(),
        "type": memory.type.value,
        "key": memory.key,
        **{name: value for name, value in own.items() if name not in taken},
        **(foreign if isinstance(foreign, dict) else {}),
    }
    return fact | {_REST: taken} if taken else fact


def read_fact(value: object) -> Fact:
    """Return the fact of a JSON object.

    Without `type` it is about the user; without `key` its key is made from its id.

    Raises:
        InvalidArgumentError: It is no object with an `id` and a `content`, or a field has a wrong
            type.
    """
    if not isinstance(value, Mapping):
        raise InvalidArgumentError("a fact is a JSON object")
    fact: dict[str, Any] = dict(value)
    name = _text(fact, "id").casefold()
    if not _HEX.fullmatch(name):
        raise InvalidArgumentError(f"a fact's id is 32 hexadecimal digits, not {quote(name)}")
    metadata = _metadata(fact) | {_ID: UUID(name).hex}
    if source := _text(fact, "source", ""):
        metadata[_SOURCE] = source
    key = check_key(_text(fact, "key", f"fact:{metadata[_ID]}"))
    kind: Any = _text(fact, "type", MemoryType.USER.value)
    memory = Memory(kind, key, _text(fact, "content"), metadata)
    return Fact(check_length(memory, LONGEST_CONTENT), _moment(fact))


def _metadata(fact: Mapping[str, Any]) -> dict[str, Any]:
    """Return the unknown fields; those with a name of this library's own are apart."""
    unknown = {name: each for name, each in fact.items() if name not in _FIELDS}
    rest = unknown.get(_REST)
    if isinstance(rest, dict):
        unknown = {name: each for name, each in unknown.items() if name != _REST} | rest
    # A start that cannot be read is another program's.
    names = _OWN if bounds(unknown, UTC)[0] is not None else {*_OWN, VALID_FROM}
    foreign = {name: each for name, each in unknown.items() if name in names}
    known = {name: each for name, each in unknown.items() if name not in names}
    return known | {_FOREIGN: foreign} if foreign else known


def _text(fact: Mapping[str, Any], name: str, default: str | None = None) -> str:
    value = default if fact.get(name) is None else fact[name]
    if not isinstance(value, str):
        raise InvalidArgumentError(f"a fact's {name} is a text, not {quote(value)}")
    return value


def _moment(fact: Mapping[str, Any]) -> str | None:
    """Return the moment: that of `created_at`, else of `created_ts`."""
    for name in ("created_at", "created_ts"):
        if (told := fact.get(name)) is not None:
            return moment_in(told, UTC, f"a fact's {name}").isoformat(timespec="microseconds")
    return None
