"""The identity layer: what a person fixed, and what earlier versions derived."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Final, Self
from uuid import uuid4

from locus_memory._internal.neutral import neutralise
from locus_memory._internal.quoting import quote
from locus_memory.errors import InvalidArgumentError, VersionConflictError
from locus_memory.events import emit
from locus_memory.memory.layers.blocks import without_blocks
from locus_memory.memory.ledger.likeness import made_up_key
from locus_memory.memory.models import Memory, MemoryType
from locus_memory.memory.scope import Scope
from locus_memory.store.base import BaseStore
from locus_memory.store.item import Put

__all__ = ["MOST_OVERRIDES", "Identity", "IdentityBook", "Override", "OwnIdentity", "derived"]

MOST_OVERRIDES: Final = 50
"""The most overrides of a scope."""

_LONGEST: Final = 300
_KEY: Final = "identity"
_ATTEMPTS: Final = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Override:
    """A sentence that a person wrote: it is always in context, and no model changes it.

    Attributes:
        id: 32 hexadecimal digits.
        text: One line of 1 to 300 characters.
        created_at: The moment it was written, ISO 8601 in UTC.
    """

    id: str
    text: str
    created_at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Who the owner of a scope is.

    Attributes:
        overrides: What a person wrote, the oldest first.
        facts: What earlier versions derived about the owner, as they stored it, until a pass makes
            memories of it; see `derived`.
    """

    overrides: tuple[Override, ...] = ()
    facts: tuple[Mapping[str, Any], ...] = ()

    def with_override(self, text: str, now: str) -> Self:
        """Return the identity with one more override.

        Raises:
            InvalidArgumentError: The text has no visible character or more than 300, the identity
                has it already, or it has 50 overrides.
        """
        line = _line(text, "an override")
        if any(each.text == line for each in self.overrides):
            raise InvalidArgumentError("the identity has this override already")
        if len(self.overrides) >= MOST_OVERRIDES:
            raise InvalidArgumentError(
                f"an identity has at most {MOST_OVERRIDES} overrides: remove one first"
            )
        added = Override(id=uuid4().hex, text=line, created_at=now)
        return replace(self, overrides=(*self.overrides, added))

    def without_override(self, override_id: str) -> Self:
        """Return the identity without one override.

        Args:
            override_id: Its id, or the beginning of the id if only one begins so.

        Raises:
            InvalidArgumentError: No override, or more than one, has this id.
        """
        wanted: object = override_id
        start = wanted if isinstance(wanted, str) and wanted else " "
        found = [each for each in self.overrides if each.id.startswith(start)]
        if len(found) != 1:
            many = "more than one override has" if found else "no override has"
            raise InvalidArgumentError(f"{many} the id {quote(override_id)}")
        return replace(self, overrides=tuple(e for e in self.overrides if e is not found[0]))

    def to_value(self) -> dict[str, Any]:
        """Return the identity as plain JSON."""
        return {
            "overrides": list(map(asdict, self.overrides)),
            "facts": list(self.facts),
        }

    @classmethod
    def from_value(cls, value: Mapping[str, Any]) -> Self:
        """Return the identity of a value that `to_value` returned.

        Raises:
            InvalidArgumentError: The value is not an identity.
        """
        try:
            return cls(
                overrides=tuple(Override(**each) for each in value["overrides"]),
                facts=tuple(map(_checked, value.get("facts", ()))),
            )
        except (AttributeError, KeyError, TypeError) as error:
            raise InvalidArgumentError("a stored value that is not an identity") from error


class IdentityBook:
    """The identities of scopes in a store.

    Args:
        store: The store, which the book never closes.
    """

    def __init__(self, store: BaseStore) -> None:
        self._store = store

    async def read(self, scope: Scope) -> Identity:
        """Return the identity of a scope; an empty one if there is none.

        An item that is not an identity is reported as `memory.record_unreadable`.

        Raises:
            BackendError: The store failed.
        """
        return (await self._stored(scope))[0]

    async def change(self, scope: Scope, change: Callable[[Identity], Identity]) -> Identity:
        """Write a changed identity, again while another writer is faster; return it.

        Args:
            scope: The scope.
            change: Returns the new identity; the same one if there is nothing to write.

        Raises:
            VersionConflictError: Other writers were faster a hundred times.
            BackendError: The store failed.
            Exception: Any error of `change`; nothing is written.
        """
        for _ in range(_ATTEMPTS):
            identity, version = await self._stored(scope)
            changed = change(identity)
            if changed == identity:
                return identity
            try:
                # What a person fixes counts at once, in every thread.
                erases = not {*identity.overrides} <= {*changed.overrides}
                async with without_blocks(self._store, scope, erases=erases):
                    await self._store.put_batch([identity_put(scope, changed, version)])
            except VersionConflictError:
                continue
            return changed
        raise VersionConflictError(0, 1)

    async def _stored(self, scope: Scope) -> tuple[Identity, int]:
        item = await self._store.get_item(scope.identity, _KEY)
        if item is None:
            return Identity(), 0
        try:
            return Identity.from_value(item.value), item.version
        except InvalidArgumentError as error:
            emit("memory.record_unreadable", error=error, layer="identity")
            return Identity(), item.version


class OwnIdentity:
    """The identity of one scope, for a person who reads and fixes it.

    Args:
        book: The identities.
        scope: The scope.
        now: Returns the present moment, ISO 8601 in UTC.
        check: Raises an `InvalidArgumentError` for a sentence that could never be shown.
    """

    def __init__(
        self,
        book: IdentityBook,
        scope: Scope,
        now: Callable[[], str],
        *,
        check: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._book = book
        self._scope = scope
        self._now = now
        self._check = check

    async def read(self) -> Identity:
        """Return the identity; an empty one if there is none.

        Raises:
            BackendError: The store failed.
        """
        return await self._book.read(self._scope)

    async def add(self, text: str) -> Override:
        """Add a sentence that is always in context, such as "Answer in English" or "Be brief".

        Raises:
            InvalidArgumentError: The text has no visible character or more than 300, it alone is
                longer than the 200 tokens of all overrides, the identity has it already, or it has
                50 overrides.
            BackendError: The store failed.
        """
        now = self._now()

        def fixed(identity: Identity) -> Identity:
            changed = identity.with_override(text, now)
            self._check(changed.overrides[-1].text)
            return changed

        return (await self._book.change(self._scope, fixed)).overrides[-1]

    async def remove(self, override_id: str) -> Override:
        """Remove an override, and return it.

        Args:
            override_id: Its id, or the beginning of the id if only one begins so.

        Raises:
            InvalidArgumentError: No override, or more than one, has this id.
            BackendError: The store failed.
        """
        removed: list[Override] = []

        def without(identity: Identity) -> Identity:
            changed = identity.without_override(override_id)
            removed[:] = [each for each in identity.overrides if each not in changed.overrides]
            return changed

        await self._book.change(self._scope, without)
        return removed[0]


def identity_put(scope: Scope, identity: Identity, version: int) -> Put:
    """Return the put of an identity in place of the stored `version`, 0 for none."""
    value = identity.to_value()
    return Put(namespace=scope.identity, key=_KEY, value=value, if_version=version, text="")


def _line(text: object, what: str) -> str:
    line = neutralise(text) if isinstance(text, str) else ""
    if not 1 <= len(line) <= _LONGEST:
        raise InvalidArgumentError(f"{what} has 1 to {_LONGEST} characters, not {len(line)}")
    return line


def _checked(fact: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a fact of an earlier version, if `derived` can read it.

    Raises:
        InvalidArgumentError: It has no text, moment or source.
        KeyError: As before.
        TypeError: As before.
    """
    if not (neutralise(fact["text"]) and fact["at"] and isinstance(fact["source"], Mapping)):
        raise InvalidArgumentError("a derived fact has a text, a moment and a source")
    return fact


def derived(identity: Identity) -> list[Memory]:
    """Return the memories of what earlier versions derived about the owner."""
    return [
        Memory(
            MemoryType.USER,
            made_up_key(each["text"]),
            each["text"],
            {"valid_from": each["at"], "extractor": "identity", **each["source"]},
        )
        for each in identity.facts
    ]
