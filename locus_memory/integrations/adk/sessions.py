"""The session service for ADK; public as `integrations.adk`.

A session is a record, with the name of a log and the number of its next event, and the log: a
namespace of its events by number. Its state is one item a key, and so are the states of the user
and of the app. Each append writes the record at the version it has read, together with the event,
so events are in one order for all processes, whatever their clocks return. A session that is
created again has another log, so nothing of a deleted one is ever seen in it; its record stays
empty for a day before it goes, so that no process takes its old version for the new one.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Final
from uuid import uuid4

from google.adk.errors.already_exists_error import AlreadyExistsError
from google.adk.errors.session_not_found_error import SessionNotFoundError
from google.adk.events.event import Event
from google.adk.platform import time as platform_time
from google.adk.platform import uuid as platform_uuid
from google.adk.sessions.base_session_service import (
    BaseSessionService,
    GetSessionConfig,
    ListSessionsResponse,
)
from google.adk.sessions.session import Session
from typing_extensions import override

from locus_memory._internal.cancellation import finished
from locus_memory._internal.recent import RecentlyUsed
from locus_memory.backends.base import Backend
from locus_memory.backends.loops import Locks
from locus_memory.errors import VersionConflictError
from locus_memory.integrations.adk.events import Json, document_of, merged, split, state_of
from locus_memory.integrations.owned import OverStore
from locus_memory.integrations.reading import (
    DAMAGE,
    NOT_OURS,
    get_readable,
    labels_below,
    readable,
    tell_unreadable,
)
from locus_memory.store.base import BaseStore, all_keys, write_together
from locus_memory.store.item import (
    Delete,
    Namespace,
    Put,
    StoreItem,
    check_identifier,
    check_namespace,
    quick_put,
)

__all__ = ["Head", "LocusSessionService", "SessionIds"]

_NAMESPACE: Final = ("adk",)
_HEADS: Final = 4096
"""How many records are kept in memory, so that an append reads nothing."""

_DAY: Final = 86_400.0
"""Seconds that the record of a deleted session stays."""

_LONGEST_WAIT: Final = 0.05
"""Seconds, before another attempt to append."""

_NUMBERS: Final = "0"
"""The prefix of the keys of events; the other keys of a log are ids of events, after a colon."""


@dataclass(frozen=True, slots=True)
class SessionIds:
    """The ids of a session."""

    app: str
    user: str
    session: str

    @classmethod
    def checked(cls, app_name: object, user_id: object, session_id: object) -> SessionIds:
        """Return ids, each a non-empty string."""
        return cls(
            check_identifier(app_name, "app_name"),
            check_identifier(user_id, "user_id"),
            check_identifier(session_id, "session_id"),
        )


@dataclass(frozen=True, slots=True)
class Head:
    """The record of a session at one version; 0: it is not stored yet."""

    version: int
    log: str
    next: int
    updated: float


class LocusSessionService(OverStore, BaseSessionService):
    """A session service of ADK that keeps its sessions in any store of the library.

    Several processes may append to one session: nothing is lost, no append is refused as stale, and
    all processes see one order. An event that is appended again, with the same id and content, is
    stored once. Of two writers of one key of a state, the last one counts. A damaged item is left
    out and told by the event `integrations.item_unreadable`.

    With transactions, an append is done whole or not at all. Without, a crash may leave an event
    without its part of the state.

    Args:
        where: A provider string, a backend or a store of the library, such as an
            `EncryptingStore`. Only the store of a string is closed here.
        namespace: The namespace of all sessions in the store.

    Raises:
        InvalidNamespaceError: The namespace is invalid.
        ConfigurationError: `where` has no store.
    """

    def __init__(
        self, where: str | BaseStore | Backend, *, namespace: Namespace = _NAMESPACE
    ) -> None:
        self._namespace = check_namespace(namespace)
        self._take(where)
        self._heads: RecentlyUsed[Head] = RecentlyUsed(_HEADS)
        self._locks = Locks()

    @override
    async def create_session(
        self,
        *,
        app_name: str,
        user_id: str,
        state: Json | None = None,
        session_id: str | None = None,
    ) -> Session:
        """Create a session; ids lose the spaces around them.

        Raises:
            AlreadyExistsError: There is a session with this id.
            ValueNotSerializableError: JSON cannot hold a value of the state; it names the key.
            BackendError: The database failed.
        """
        name = _stripped(session_id) or platform_uuid.new_uuid()
        ids = SessionIds.checked(app_name, user_id, name)
        written = state_of(state or {}, "state")
        head = Head(0, uuid4().hex, 1, platform_time.get_time())
        while not await self._begun(ids, head, written):
            if await self._head(ids) is not None:
                raise AlreadyExistsError(f"Session with id {name} already exists.")
            deleted = await self.store.get_item(self._sessions_of(ids), name)
            head = replace(head, version=0 if deleted is None else deleted.version)
        own = split(written)[2]
        return _session(ids, head, merged(*await self._shared(ids), own))

    @override
    async def get_session(
        self,
        *,
        app_name: str,
        user_id: str,
        session_id: str,
        config: GetSessionConfig | None = None,
    ) -> Session | None:
        """Return a session with its state and its events, or `None` if there is none."""
        name = _stripped(session_id)
        if not name:
            return None
        ids = SessionIds.checked(app_name, user_id, name)
        head = await self._head(ids)
        if head is None:
            return None
        (app, user), own, events = await asyncio.gather(
            self._shared(ids),
            self._read(self._state_of(ids), f"{head.log}="),
            self._events(ids, head.log, config or GetSessionConfig()),
        )
        return _session(ids, head, merged(app, user, own), events)

    @override
    async def list_sessions(
        self, *, app_name: str, user_id: str | None = None
    ) -> ListSessionsResponse:
        """Return the sessions of a user, or of all users, without events; the newest is last."""
        check_identifier(app_name, "app_name")
        users = [check_identifier(user_id, "user_id")] if user_id is not None else None
        if users is None:
            app = (*self._namespace, "sessions", app_name)
            users = [each async for each in labels_below(self.store, app)]
        listed = await asyncio.gather(*(self._of_user(app_name, user) for user in users))
        found = [session for each in listed for session in each]
        found.sort(key=lambda session: (session.last_update_time, session.user_id, session.id))
        return ListSessionsResponse(sessions=found)

    @override
    async def delete_session(self, *, app_name: str, user_id: str, session_id: str) -> None:
        """Delete a session; the states of its user and of its app stay."""
        name = _stripped(session_id)
        if not name:
            return
        ids = SessionIds.checked(app_name, user_id, name)
        while (head := await self._head(ids)) is not None:
            ttl = _DAY if self.store.capabilities.ttl else None
            try:
                await self.store.put(
                    self._sessions_of(ids), name, None, ttl=ttl, if_version=head.version, text=""
                )
            except VersionConflictError:
                continue
            self._heads.discard(repr(ids))
            await self._erase(ids, head.log)
            return

    @override
    async def get_user_state(self, *, app_name: str, user_id: str) -> Json:
        """Return the state of a user, its keys without the prefix `user:`."""
        return (await self._shared(SessionIds.checked(app_name, user_id, "-")))[1]

    @override
    async def append_event(self, session: Session, event: Event) -> Event:
        """Append an event, and apply its part of the state; a partial event is only returned.

        Raises:
            SessionNotFoundError: There is no such session.
            ValueNotSerializableError: JSON cannot hold the event; the error names the field, such
                as `event.actions.state_delta.place`. Nothing is written.
            BackendError: The database failed.
        """
        if event.partial:
            return event
        ids = SessionIds.checked(session.app_name, session.user_id, session.id)
        document = document_of(event)
        async with self._locks.of(ids):
            is_new = await finished(self._append(ids, document))
        if is_new:
            await super().append_event(session=session, event=event)
            session.last_update_time = event.timestamp
        return event

    async def _begun(self, ids: SessionIds, head: Head, state: Json) -> bool:
        """Store the record and the state of a new session; false if there is a record."""
        record = self._record(ids, head, if_version=head.version)
        writes = [record, *self._states(ids, head.log, state)]
        try:
            await write_together(self.store, writes)
        except VersionConflictError:
            return False
        self._heads.put(repr(ids), replace(head, version=head.version + 1))
        return True

    async def _append(self, ids: SessionIds, document: Json) -> bool:
        """Store an event behind the last one; false if it is there already.

        Raises:
            SessionNotFoundError: There is no such session.
        """
        head = self._heads.get(repr(ids)) or await self._head(ids)
        numbers: StoreItem | None = None
        wait = 0.0
        while head is not None:
            following, moment = head.next + 1, float(document["timestamp"])
            after = Head(head.version + 1, head.log, following, moment)
            writes = self._writes(ids, head, after, document, numbers)
            try:
                await write_together(self.store, writes)
            except VersionConflictError:
                self._heads.discard(repr(ids))
            else:
                self._heads.put(repr(ids), after)
                return True
            await asyncio.sleep(random.uniform(0, wait))  # noqa: S311 - no secret
            wait = min(_LONGEST_WAIT, wait * 2 + 0.001)
            head = await self._head(ids)
            if head is not None:
                numbers = await self._numbers(ids, head.log, document["id"])
                if await self._is_there(ids, head.log, document, numbers):
                    return False
        raise SessionNotFoundError(f"Session {ids.session} not found.")

    def _writes(
        self, ids: SessionIds, head: Head, after: Head, document: Json, numbers: StoreItem | None
    ) -> list[Put | Delete]:
        """Return the writes of an append: the record, the number under the id, event and state.

        The record is put at the version of `head`, which makes it that of `after`.
        """
        log = self._log_of(ids, head.log)
        known, version = ([], 0) if numbers is None else (_numbers_of(numbers), numbers.version)
        name = f":{document['id']}"
        return [
            self._record(ids, after, if_version=head.version),
            quick_put(log, name, [*known, head.next], if_version=version, text=""),
            quick_put(log, _key(head.next), document, if_version=0, text=""),
            *self._states(ids, head.log, document["actions"].get("state_delta") or {}),
        ]

    def _record(self, ids: SessionIds, head: Head, *, if_version: int) -> Put:
        value = {"log": head.log, "next": head.next, "updated": head.updated}
        namespace = self._sessions_of(ids)
        return quick_put(namespace, ids.session, value, if_version=if_version, text="")

    def _states(self, ids: SessionIds, log: str, delta: Json) -> Iterable[Put]:
        app, user, own = split(delta)
        for key, value in own.items():
            yield quick_put(self._state_of(ids), f"{log}={key}", value, text="")
        for namespace, part in zip(self._shared_of(ids), (app, user), strict=True):
            for key, value in part.items():
                yield quick_put(namespace, f"={key}", value, text="")

    async def _head(self, ids: SessionIds) -> Head | None:
        """Return the stored record, and keep it; of an unreadable one, what its log tells."""
        try:
            item = await self.store.get_item(self._sessions_of(ids), ids.session)
            head = None if item is None else _head_of(item)
        except (*DAMAGE, *NOT_OURS) as error:
            tell_unreadable(self._sessions_of(ids), ids.session, error)
            # It would refuse every later append.
            await self.store.delete(self._sessions_of(ids), ids.session)
            head = await self._recovered(ids)
            await write_together(self.store, [self._record(ids, head, if_version=head.version)])
            return await self._head(ids)
        if head is not None:
            self._heads.put(repr(ids), head)
        return head

    async def _recovered(self, ids: SessionIds) -> Head:
        newest = Head(0, uuid4().hex, 1, 0.0)
        async for log in labels_below(self.store, self._log_of(ids)):
            last = await self._events(ids, log, GetSessionConfig(num_recent_events=1))
            keys = await all_keys(self.store, self._log_of(ids, log), _NUMBERS)
            if keys and last and last[0].timestamp >= newest.updated:
                newest = Head(0, log, int(keys[-1]) + 1, last[0].timestamp)
        return newest

    async def _numbers(self, ids: SessionIds, log: str, event_id: str) -> StoreItem | None:
        """Return the item with the numbers of the events that have an id."""
        namespace, key = self._log_of(ids, log), f":{event_id}"
        try:
            return await self.store.get_item(namespace, key)
        except DAMAGE as error:
            tell_unreadable(namespace, key, error)
            await self.store.delete(namespace, key)
            return None

    async def _is_there(
        self, ids: SessionIds, log: str, document: Json, numbers: StoreItem | None
    ) -> bool:
        for number in [] if numbers is None else _numbers_of(numbers):
            found = await get_readable(self.store, self._log_of(ids, log), _key(number), _value)
            if found is not None and found[1] == document:
                return True
        return False

    async def _events(self, ids: SessionIds, log: str, config: GetSessionConfig) -> list[Event]:
        """Return the last events, the oldest first."""
        most, after = config.num_recent_events, config.after_timestamp
        found: list[Event] = []
        if most == 0:
            return found
        last = most is not None or after is not None
        page = 500 if most is None else min(most, 500)
        async for _, event in readable(
            self.store,
            self._log_of(ids, log),
            _event_of,
            prefix=_NUMBERS,
            descending=last,
            page=page,
        ):
            if after is not None and event.timestamp < after:
                break
            found.append(event)
            if len(found) == most:
                break
        return found[::-1] if last else found

    async def _of_user(self, app: str, user: str) -> list[Session]:
        ids = SessionIds(app, user, "-")
        heads = {
            item.key: head
            async for item, head in readable(self.store, self._sessions_of(ids), _head_of)
            if head is not None
        }
        if not heads:
            return []
        shared, states = await asyncio.gather(
            self._shared(ids), self._read(self._state_of(ids), "")
        )
        own: dict[str, Json] = {}
        for key, value in states.items():
            log, _, name = key.partition("=")
            own.setdefault(log, {})[name] = value
        return [
            _session(SessionIds(app, user, name), head, merged(*shared, own.get(head.log, {})))
            for name, head in heads.items()
        ]

    async def _shared(self, ids: SessionIds) -> tuple[Json, Json]:
        app, user = await asyncio.gather(*(self._read(each, "=") for each in self._shared_of(ids)))
        return app, user

    async def _read(self, namespace: Namespace, prefix: str) -> Json:
        """Return the values of a namespace by their keys without the prefix."""
        return {
            item.key.removeprefix(prefix): value
            async for item, value in readable(self.store, namespace, _value, prefix=prefix or None)
        }

    async def _erase(self, ids: SessionIds, log: str) -> None:
        """Delete the state and the events of a session that has no record any more."""
        states = self._state_of(ids)
        keys = await all_keys(self.store, states, f"{log}=")
        await self.store.delete_batch([(states, key) for key in keys])
        await self.store.clear_namespace(self._log_of(ids, log))

    def _sessions_of(self, ids: SessionIds) -> Namespace:
        return (*self._namespace, "sessions", ids.app, ids.user)

    def _log_of(self, ids: SessionIds, *log: str) -> Namespace:
        return (*self._namespace, "logs", ids.app, ids.user, ids.session, *log)

    def _state_of(self, ids: SessionIds) -> Namespace:
        return (*self._namespace, "session_states", ids.app, ids.user)

    def _shared_of(self, ids: SessionIds) -> tuple[Namespace, Namespace]:
        return (
            (*self._namespace, "app_states", ids.app),
            (*self._namespace, "user_states", ids.app, ids.user),
        )


def _stripped(session_id: object) -> str | None:
    return check_identifier(session_id, "session_id").strip() if session_id else None


def _session(ids: SessionIds, head: Head, state: Json, events: Iterable[Event] = ()) -> Session:
    return Session(
        app_name=ids.app,
        user_id=ids.user,
        id=ids.session,
        state=state,
        events=list(events),
        last_update_time=head.updated,
    )


def _key(number: int) -> str:
    return f"{number:016d}"


def _value(item: StoreItem) -> Any:
    return item.value


def _event_of(item: StoreItem) -> Event:
    return Event.model_validate(item.value)


def _head_of(item: StoreItem) -> Head | None:
    """Return the record of a session; of a deleted one, `None`."""
    value = item.value
    if value is None:
        return None
    log, following, updated = value["log"], value["next"], value["updated"]
    if not isinstance(log, str) or type(following) is not int:
        raise TypeError("a record has the name of a log and a number")
    return Head(item.version, log, following, float(updated))


def _numbers_of(item: StoreItem) -> list[int]:
    value: object = item.value
    return [each for each in value if type(each) is int] if isinstance(value, list) else []
