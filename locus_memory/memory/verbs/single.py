"""Single memories of a manager's scope: their history, undo and erasure."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from locus_memory._internal.quoting import quote
from locus_memory.errors import InvalidArgumentError, VersionConflictError
from locus_memory.memory.extraction.extraction import check_length, check_sentence
from locus_memory.memory.layers.vitals import Vitals, VitalsBook, VitalsChange
from locus_memory.memory.ledger.ledger import Retirement, Statement
from locus_memory.memory.ledger.likeness import same_content
from locus_memory.memory.models import (
    EXPIRES_AT,
    LONGEST_CONTENT,
    ORIGIN,
    Memory,
    MemoryType,
    Origin,
    as_origin,
    as_type,
    check_origin,
    has_authority,
    is_expired,
    origin_of,
    refusal,
)
from locus_memory.memory.phrases.naming import named_memory
from locus_memory.memory.reading.fixed import check_room
from locus_memory.memory.recall.selection import Selection
from locus_memory.memory.scope import current_key, split_key
from locus_memory.memory.validity import (
    VALID_FROM,
    VALID_TO,
    VALIDITY,
    Moment,
    Then,
    checked,
    moment_in,
)
from locus_memory.memory.verbs.identity import OwnIdentity
from locus_memory.memory.verbs.scoped import ScopedManager
from locus_memory.store.item import check_key, check_version

__all__ = ["SingleMemories", "kinds_of"]


class SingleMemories(ScopedManager):
    """The part of a memory manager that works on memories one by one."""

    @property
    def identity(self) -> OwnIdentity:
        """What a person fixed: always shown, and changed by nobody else."""
        return OwnIdentity(self._ledger, self._scope, self._reader)

    async def history(self, key: str, type: MemoryType | str | None = None) -> list[Memory]:  # noqa: A002 - the field's word
        """Return all versions of a memory: the current one, then past ones, newest first.

        A past version says in its metadata when it ended, `superseded_at`, and by what,
        `superseded_by`: a change (`update`, `delete`, `evict` or `undo`) and the version that
        took its place, if there was one.

        Args:
            key: The memory's key.
            type: The memory's type; `None`: whatever types have the key, one after another.

        Raises:
            BackendError: The store failed.
        """
        check_key(key)
        kinds = kinds_of(type)
        found = await asyncio.gather(
            *(self._ledger.history(self._scope, kind, key) for kind in kinds)
        )
        return [memory for versions in found for memory in versions]

    async def undo(
        self,
        key: str,
        type: MemoryType | str | None = None,  # noqa: A002 - the field's word
        *,
        origin: Origin | str = Origin.PERSON,
    ) -> Memory | None:
        """Take back the last change of a memory; a second call takes back the one before.

        A replaced memory is current again, a deleted or evicted one is restored, an added one
        is removed. What was taken back stays in the history. Nothing happens where there is no
        change left, or the version to go back to is no longer kept. Where a restored memory is
        one too many of its type, another one goes to the history, with an event.

        Args:
            key: The memory's key.
            type: The memory's type; `None`: of the types that have the key, the one whose
                change to take back is the latest.
            origin: Who takes it back; only a person changes what a person fixed.

        Returns:
            What is current now, or `None`.

        Raises:
            InvalidArgumentError: The key or the origin is invalid, or this origin may not.
            BackendError: The store failed.
        """
        check_key(key)
        kinds, told = kinds_of(type), as_origin(origin)
        moments = [await self._ledger.last_change(self._scope, kind, key) for kind in kinds]
        changed = {k: at for k, at in zip(kinds, moments, strict=True) if at is not None}
        if not changed:
            return None
        latest = max(changed, key=lambda kind: changed[kind])
        return await self._ledger.undo(self._scope, latest, key, told)

    async def forget(self, key: str, type: MemoryType | str | None = None) -> int:  # noqa: A002 - the field's word
        """Erase a memory for good: what is current, its vector and its history.

        Messages that still wait for extraction are left alone, and may bring it back. Episodes and
        recorded turns that tell it are left alone as well: `locus_memory.forget(where, key=...)`
        erases these too.

        Args:
            key: The memory's key.
            type: The memory's type; `None`: all types.

        Returns:
            How many versions were erased.

        Raises:
            BackendError: The store failed; call it again.
        """
        check_key(key)
        return sum([await self._ledger.forget(self._scope, kind, key) for kind in kinds_of(type)])

    async def memories(
        self,
        type: MemoryType | str | None = None,  # noqa: A002 - the field's word
        *,
        origins: Iterable[Origin | str] | None = None,
        as_of: Moment | None = None,
        at: Moment | None = None,
    ) -> AsyncIterator[Memory]:
        """Yield all current memories that have not expired, by type and key, however many.

        A moment is a `datetime`, ISO 8601, or seconds since the epoch. Without an offset, it is of
        the `timezone` of the user; a day is its beginning.

        Args:
            type: Only memories of this type; `None`: of all types.
            origins: Only memories of these origins.
            as_of: Yield what was known at this moment: the versions that were current then. What
                was written later is left out, and what was replaced or deleted later is back. What
                was erased (`forget`) stays gone, and so does a version beyond the `history_limit`:
                a memory with so many later changes is missing.
            at: Yield what was true at this moment: from the `valid_from` of a memory to its
                `valid_to`, a day to its end. What states neither was true from its statement until
                it was superseded; a change that was undone counts as never made. With `as_of`, what
                was thought true then.

        Raises:
            InvalidArgumentError: An unknown type or origin, or no moment.
            BackendError: The store failed.
        """
        selection, then = Selection(origins=origins), self._then(as_of, at)
        now = self._ledger.now() if then is None else then.now.isoformat()
        for kind in kinds_of(type):
            found = (
                self._ledger.memories(self._scope, kind)
                if then is None
                else (each async for each, _ in self._ledger.memories_at(self._scope, kind, then))
            )
            async for memory in found:
                if not is_expired(memory, now) and selection.has(memory):
                    yield memory

    def _then(self, as_of: Moment | None, at: Moment | None) -> Then | None:
        """Return the moment that arguments name; `None`: now.

        Raises:
            InvalidArgumentError: One is no moment.
        """
        return Then.read(as_of, at, self._options.zone())

    async def get(self, memory_id: str) -> Memory | None:
        """Return a current memory by its id; `None` if there is none, or it has expired.

        Args:
            memory_id: `Memory.id`, or the type, a colon and the key, such as `user:home`.

        Raises:
            InvalidArgumentError: It is no text, or two memories have this id: name the type and the
                key.
            BackendError: The store failed.
        """
        found = await self._by_id(memory_id)
        return None if found is None or is_expired(found, self._ledger.now()) else found

    async def _by_id(self, memory_id: str) -> Memory | None:
        """Return a memory by its id, an expired one included."""
        wanted: object = memory_id
        if not isinstance(wanted, str):
            raise InvalidArgumentError(f"a memory's id is a text, not {quote(wanted)}")
        named = split_key(memory_id)
        if named is not None:
            return await self._ledger.current(self._scope, *named)
        found = [
            each
            for kind in MemoryType
            async for each in self._ledger.memories(self._scope, kind)
            if each.id == memory_id
        ]
        if len(found) > 1:
            raise InvalidArgumentError(
                f"two memories have the id {quote(memory_id)}: name one as type:key"
            )
        return found[0] if found else None

    async def vitals(self, memories: Sequence[Memory]) -> list[Vitals]:
        """Return the vital signs of current memories, as they are now.

        Raises:
            BackendError: The store failed.
        """
        now = self._ledger.now()
        found = await VitalsBook(self._store).of(self._scope, memories)
        return [found[current_key(each.type, each.key)].at(each, now) for each in memories]

    async def feedback(
        self,
        key: str,
        *,
        helpful: bool,
        type: MemoryType | str | None = None,  # noqa: A002 - the field's word
    ) -> bool:
        """Record whether a memory was helpful: its trust rises by 0.1, or falls by 0.2.

        It stays from 0 to 1. Only the vital signs change, so there is no new version. The trust
        counts in the ranking with `blend="trust"`.

        Args:
            key: The memory's key.
            helpful: Whether the memory was right and of use.
            type: The memory's type; `None`: all types that have the key.

        Returns:
            Whether there was such a memory.

        Raises:
            BackendError: The store failed.
        """
        check_key(key)
        now, names = self._ledger.now(), [current_key(kind, key) for kind in kinds_of(type)]
        changes: dict[str, VitalsChange] = dict.fromkeys(
            names, lambda _, vitals: vitals.rated(now, helpful=helpful)
        )
        return bool(await VitalsBook(self._store).change(self._scope, changes))

    async def remember(
        self,
        content: str,
        *,
        extractor: str = "manual",
        source: Mapping[str, Any] | None = None,
        valid_from: Moment | None = None,
        valid_to: Moment | None = None,
    ) -> str:
        """Save a sentence, and return the id of its memory.

        It gets the key of phrases for facts such as a home, or else one of its own. A
        sentence that is known already keeps its memory and its id.

        Args:
            content: At most 2,000 characters.
            extractor: Written into the metadata: who asked for it.
            source: More metadata, such as `thread_id`, `message_ids` and `origin`, which is a
                person by default.
            valid_from: Since when it is true, a day or a moment; `None`: it does not say.
            valid_to: Until when, likewise; a day to its end.

        Raises:
            InvalidArgumentError: The content is empty or too long, or looks like a secret, or it
                may not take the place of what the user or a person said, or a validity is none.
            BackendError: The store failed.
        """
        check_sentence(content, allow_secrets=self._options.allow_secrets)
        told = {VALID_FROM: valid_from, VALID_TO: valid_to, "extractor": extractor}
        facts = checked({**told, **(source or {})}, self._options.zone())
        memory = check_origin(await named_memory(content, metadata=facts))
        if memory.type is MemoryType.FEEDBACK and not has_authority(memory):
            # It is never a rule for the agent.
            memory = replace(memory, type=MemoryType.REFERENCE)
        return (await self._saved(memory)).id

    async def _saved(self, memory: Memory) -> Memory:
        """Return the memory as written, or else the known one with the same content."""
        await check_room(self._reader, self._scope, [memory])
        written, known = await self._ledger.write(self._scope, [Statement(memory)])
        if written:
            return written[0]
        name = current_key(memory.type, memory.key)
        found = await self._by_id(known.get(name, name))
        refused = found and refusal(found, memory.type, origin_of(memory))
        if found and refused and not same_content(found.content, memory.content):
            raise InvalidArgumentError(refused)
        return found or memory

    async def update(
        self,
        memory_id: str,
        content: str | None = None,
        *,
        expires_at: datetime | None = None,
        valid_from: Moment | None = None,
        valid_to: Moment | None = None,
        if_sequence: int | None = None,
    ) -> Memory | None:
        """Write a new version of a current memory; `undo` takes it back.

        A new content is that of a person, whoever told the present one, and says nothing of when
        the present one is true. A new moment of expiry alone makes no new version.

        Args:
            memory_id: As for `get`.
            content: The new content; `None`: the present one.
            expires_at: The moment from which it is no longer recalled, without a time zone in
                UTC; `None`: as before.
            valid_from: Since when it is true, as for `remember`; `None`: as before.
            valid_to: Until when, likewise.
            if_sequence: Write only if the current version has this `sequence` in its metadata.

        Returns:
            The new version; `None` if there is no such memory.

        Raises:
            InvalidArgumentError: As for `get`, or an empty or long content, or one that is fixed
                and has no room to be shown, or a validity is none.
            VersionConflictError: The current version has another `sequence`; nothing is written.
            BackendError: The store failed.
        """
        known = await self._by_id(memory_id)
        if known is None:
            return None
        metadata = dict(known.metadata)
        if expires_at is not None:
            metadata[EXPIRES_AT] = moment_in(expires_at, UTC).isoformat()
        if content is not None and not same_content(content, known.content):
            metadata = {n: e for n, e in metadata.items() if n not in VALIDITY}
            metadata[ORIGIN] = Origin.PERSON.value
        told = ((VALID_FROM, valid_from), (VALID_TO, valid_to))
        metadata = checked(
            metadata | {n: e for n, e in told if e is not None}, self._options.zone()
        )
        new = replace(
            known, content=known.content if content is None else content, metadata=metadata
        )
        _check_sequence(known, if_sequence)
        if content is not None:
            await check_room(self._reader, self._scope, [new])
        edit = Statement(check_length(new, LONGEST_CONTENT), only=if_sequence)
        written = await self._ledger.apply(self._scope, [edit])
        if written:
            return written[0]
        # Another writer may have been faster.
        found = await self._by_id(memory_id)
        _check_sequence(found, if_sequence)
        return found

    async def trust(self, memory_id: str) -> Memory | None:
        """Promote a current memory to one that a person vouches for; `undo` takes it back.

        What a tool, a document or an import told has the authority of a person's own words then.
        The history keeps who told it.

        Args:
            memory_id: As for `get`.

        Returns:
            The new version; one of the user or a person as it is; `None` if there is none.

        Raises:
            InvalidArgumentError: As for `get`.
            BackendError: The store failed.
        """
        known = await self.get(memory_id)
        if known is None:
            return None
        new = replace(known, metadata={**known.metadata, ORIGIN: Origin.PERSON.value})
        edit = Statement(new, only=known.metadata.get("sequence"))
        written = await self._ledger.apply(self._scope, [edit])
        return written[0] if written else await self.get(memory_id)

    async def delete(self, memory_id: str, *, origin: Origin | str = Origin.PERSON) -> bool:
        """Retire a current memory; `undo` brings it back. To erase it for good, use `forget`.

        Args:
            memory_id: As for `get`.
            origin: Who wants it: a tool cannot retire what the user or a person said.

        Returns:
            Whether there was one.

        Raises:
            InvalidArgumentError: As for `get`, or the origin is unknown or may not retire it.
            BackendError: The store failed.
        """
        known, wants = await self._by_id(memory_id), as_origin(origin)
        if known is not None:
            await self._ledger.apply(self._scope, [Retirement(known.type, known.key, origin=wants)])
        if known is not None and (refused := refusal(known, known.type, wants)) is not None:
            raise InvalidArgumentError(refused)
        return known is not None


def _check_sequence(memory: Memory | None, wanted: int | None) -> None:
    """Check that a memory is at the version that the caller names.

    Raises:
        VersionConflictError: It is at another one, or gone.
    """
    stated = None if memory is None else memory.metadata.get("sequence")
    actual = stated if isinstance(stated, int) else 0
    if check_version(wanted) is not None and (wanted != actual or not actual):
        raise VersionConflictError(wanted or 0, actual)


def kinds_of(type: MemoryType | str | None) -> list[MemoryType]:  # noqa: A002 - the field's word
    """Return the types that an argument names; `None`: all.

    Raises:
        InvalidArgumentError: The type is unknown.
    """
    return list(MemoryType) if type is None else [as_type(type)]
