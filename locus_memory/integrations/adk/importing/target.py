"""The session service as the target of an import: it takes sessions as they were."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, Final
from uuid import uuid4

from google.adk.sessions.base_session_service import GetSessionConfig

from locus_memory.errors import VersionConflictError
from locus_memory.integrations.adk.events import Json, document_of
from locus_memory.integrations.adk.importing.sources import Original, State
from locus_memory.integrations.adk.sessions import Head, LocusSessionService, SessionIds
from locus_memory.store.base import write_together
from locus_memory.store.item import Namespace, Restored, timestamp

__all__ = ["Target"]

_PAGE: Final = 200


class Target(LocusSessionService):
    """A session service that restores sessions, with the moments of their events.

    The numbers of events are reserved in the record of the session first. So its events are always
    the first ones of the original, and a second call adds the missing ones.
    """

    async def restored(self, original: Original) -> int | None:
        """Add what a session does not have; return how many events, `None` if it has others."""
        name = original.name
        ids = SessionIds.checked(name.app, name.user, name.session.strip())
        head = await self._head(ids) or await self._new(ids, original)
        events = [] if head is None else await self._events(ids, head.log, GetSessionConfig())
        there = [document_of(each) for each in events]
        same = all(one == other for one, other in zip(there, original.events, strict=False))
        if head is None or not same:
            return None
        if len(there) > len(original.events):
            # The session has gone on since.
            return 0
        own, moment = self._state_of(ids), timestamp(original.updated)
        await self._restore(own, f"{head.log}=", original.state, moment, always=True)
        return await self._add(ids, head, original.events[len(there) :], original.updated)

    async def restored_state(self, state: State) -> int:
        """Write the keys of an app or a user that are not there, or older; return how many."""
        ids = SessionIds.checked(state.app, "-" if state.user is None else state.user, "-")
        namespace = self._shared_of(ids)[0 if state.user is None else 1]
        return await self._restore(namespace, "=", state.values, state.updated)

    async def _new(self, ids: SessionIds, original: Original) -> Head | None:
        """Create a session with its last state; `None` if another process was first."""
        head = Head(0, uuid4().hex, 1, original.updated)
        deleted = await self.store.get_item(self._sessions_of(ids), ids.session)
        if deleted is not None:
            head = Head(deleted.version, head.log, 1, original.updated)
        if not await self._begun(ids, head, original.state):
            return None
        return await self._head(ids)

    async def _add(
        self, ids: SessionIds, head: Head, events: Sequence[Json], updated: float
    ) -> int | None:
        """Append events; `None` if another process has written meanwhile."""
        # Without batches, a kill could leave a gap in a page.
        size = _PAGE if self.store.capabilities.batch_operations else 1
        for start in range(0, len(events), size):
            page = events[start : start + size]
            after = Head(head.version + 1, head.log, head.next + len(page), updated)
            try:
                await write_together(
                    self.store, [self._record(ids, after, if_version=head.version)]
                )
            except VersionConflictError:
                self._heads.discard(repr(ids))
                return None
            log = self._log_of(ids, head.log)
            await self.store.restore(list(_items(log, page, head.next)))
            self._heads.put(repr(ids), after)
            head = after
        return len(events)

    async def _restore(
        self,
        namespace: Namespace,
        prefix: str,
        values: Json,
        updated: datetime,
        *,
        always: bool = False,
    ) -> int:
        """Write the values that are not there, or older if not `always`; return how many."""
        items: list[Restored] = []
        for key, value in values.items():
            item = await self.store.get_item(namespace, f"{prefix}{key}")
            version = 1 if item is None else item.version + 1
            if item is None or (item.value != value and (always or item.updated_at < updated)):
                items.append(_restored(namespace, f"{prefix}{key}", value, updated, version))
        if items:
            await self.store.restore(items)
        return len(items)


def _items(log: Namespace, events: Sequence[Json], first: int) -> Iterator[Restored]:
    """Yield the item of each event, and the one that finds its number by its id."""
    for number, event in enumerate(events, first):
        moment = timestamp(event["timestamp"])
        yield _restored(log, f":{event['id']}", [number], moment)
        yield _restored(log, f"{number:016d}", event, moment)


def _restored(
    namespace: Namespace, key: str, value: Any, moment: datetime, version: int = 1
) -> Restored:
    return Restored(
        namespace=namespace,
        key=key,
        value=value,
        text="",
        version=version,
        created_at=moment,
        updated_at=moment,
    )
