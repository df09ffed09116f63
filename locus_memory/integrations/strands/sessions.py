"""The session repository for Strands; public as `integrations.strands`."""

# Strands is installed in an environment of its own, for it needs an older release of `mcp`.
# mypy: disable-error-code="import-not-found, misc"
# pyright: reportMissingImports=false, reportUnknownParameterType=false
# pyright: reportUntypedBaseClass=false
# The framework may pass more options than it has today.
# ruff: noqa: ARG002

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar

from strands.session.session_repository import SessionRepository
from strands.types.exceptions import SessionException
from strands.types.session import Session, SessionAgent, SessionMessage, SessionType

from locus_memory._internal.bridge import shared_bridge
from locus_memory._internal.quoting import quote
from locus_memory._internal.recent import RecentlyUsed
from locus_memory.backends.base import Backend
from locus_memory.errors import ValueNotSerializableError, VersionConflictError
from locus_memory.integrations.reading import (
    DAMAGE,
    NOT_OURS,
    get_readable,
    naming,
    readable,
    tell_unreadable,
)
from locus_memory.store.base import BaseStore, all_keys
from locus_memory.store.item import (
    Namespace,
    StoreItem,
    check_identifier,
    check_limit,
    check_namespace,
)
from locus_memory.store.opening import store_of

if TYPE_CHECKING:
    from strands.multiagent.base import MultiAgentBase

__all__ = ["LocusSessionRepository"]

_NAMESPACE: Final = ("strands",)
_KNOWN: Final = 10_000
"""How many agents are remembered to exist."""

_T = TypeVar("_T")


class LocusSessionRepository(SessionRepository):
    """A `SessionRepository` of Strands that keeps sessions in any store of the library.

    ```python
    sessions = LocusSessionRepository("postgresql:mydb")
    agent = Agent(session_manager=RepositorySessionManager("ada", sessions))
    ```

    Several processes may append to one session: a message whose number another process has taken
    gets the next one, which is written to `message_id`. The state of an agent is that of the last
    writer, as in the framework's own repositories. A damaged message is left out, a damaged session
    or agent reads as missing and can be created again; each is told by the event
    `integrations.item_unreadable`.

    The framework calls these blocking methods from its event loop; they run in the background event
    loop of `locus_memory.sync`, and the framework's loop stands still meanwhile.

    Args:
        where: A provider string, a backend or a store of the library, such as an
            `EncryptingStore`. Only the store of a string is closed here.
        namespace: The namespace of these sessions alone.

    Raises:
        InvalidNamespaceError: The namespace is invalid.
        ConfigurationError: `where` has no store.
    """

    def __init__(
        self, where: str | BaseStore | Backend, *, namespace: Namespace = _NAMESPACE
    ) -> None:
        self._namespace = check_namespace(namespace)
        self.store, self._owned = store_of(where)
        self._known: RecentlyUsed[bool] = RecentlyUsed(_KNOWN)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.store!r})"

    def create_session(self, session: Session, **kwargs: Any) -> Session:
        """Create a session.

        Raises:
            SessionException: It exists already.
        """
        key = check_identifier(session.session_id, "session_id")
        _wait(self._create(self._place("sessions"), key, session.to_dict(), _session_of))
        return session

    def read_session(self, session_id: str, **kwargs: Any) -> Session | None:
        """Return a session, or `None` if it does not exist."""
        check_identifier(session_id, "session_id")
        return _wait(self._read(self._place("sessions"), session_id, _session_of))

    def delete_session(self, session_id: str) -> None:
        """Delete a session with its agents and messages, while no process uses it.

        Raises:
            SessionException: It does not exist.
        """
        _wait(self._delete(check_identifier(session_id, "session_id")))

    def create_agent(self, session_id: str, session_agent: SessionAgent, **kwargs: Any) -> None:
        """Create an agent of a session.

        Raises:
            SessionException: It exists already, or there is no such session.
            ValueNotSerializableError: JSON cannot hold it; the error names the field.
        """
        check_identifier(session_id, "session_id")
        key, place = _agent_id(session_agent.agent_id), self._place("agents", session_id)
        _wait(self._require("session", self._place("sessions"), session_id))
        with naming("session_agent"):
            _wait(self._create(place, key, session_agent.to_dict(), _agent_of))
        self._known.put(repr((session_id, key)), value=True)

    def read_agent(self, session_id: str, agent_id: str, **kwargs: Any) -> SessionAgent | None:
        """Return an agent, or `None` if it does not exist."""
        place = self._place("agents", check_identifier(session_id, "session_id"))
        agent: SessionAgent | None = _wait(self._read(place, _agent_id(agent_id), _agent_of))
        if agent is not None:
            self._known.put(repr((session_id, agent_id)), value=True)
        return agent

    def update_agent(self, session_id: str, session_agent: SessionAgent, **kwargs: Any) -> None:
        """Replace an agent; the moment of its creation stays.

        Raises:
            SessionException: It does not exist.
            ValueNotSerializableError: JSON cannot hold it; the error names the field.
        """
        place = self._place("agents", check_identifier(session_id, "session_id"))
        with naming("session_agent"):
            _wait(self._update(place, _agent_id(session_agent.agent_id), session_agent, _agent_of))

    def create_message(
        self, session_id: str, agent_id: str, session_message: SessionMessage, **kwargs: Any
    ) -> None:
        """Append a message; if its number is taken, it gets the one after the last.

        Raises:
            SessionException: There is no such agent.
            ValueNotSerializableError: JSON cannot hold it; the error names the field.
        """
        place = self._messages(session_id, agent_id)
        _number(session_message.message_id)
        with naming("session_message"):
            _wait(self._append(place, session_message))

    def read_message(
        self, session_id: str, agent_id: str, message_id: int, **kwargs: Any
    ) -> SessionMessage | None:
        """Return a message, or `None` if it does not exist."""
        place = self._messages(session_id, agent_id)
        return _wait(self._read(place, _number(message_id), _message_of))

    def update_message(
        self, session_id: str, agent_id: str, session_message: SessionMessage, **kwargs: Any
    ) -> None:
        """Replace a message, such as by its redacted form; the moment of its creation stays.

        Raises:
            SessionException: It does not exist.
            ValueNotSerializableError: JSON cannot hold it; the error names the field.
        """
        place = self._messages(session_id, agent_id)
        key = _number(session_message.message_id)
        with naming("session_message"):
            _wait(self._update(place, key, session_message, _message_of))

    def list_messages(
        self,
        session_id: str,
        agent_id: str,
        limit: int | None = None,
        offset: int = 0,
        **kwargs: Any,
    ) -> list[SessionMessage]:
        """Return the messages of an agent in their order.

        Args:
            session_id: The session.
            agent_id: The agent.
            limit: At most this many; `None`: all.
            offset: Skip this many of the first, the damaged ones included.
            **kwargs: Ignored.

        Raises:
            SessionException: There is no such agent.
        """
        most = None if limit is None else check_limit(limit)
        return _wait(
            self._list(self._messages(session_id, agent_id), most, check_limit(offset, "offset"))
        )

    def create_multi_agent(
        self, session_id: str, multi_agent: MultiAgentBase, **kwargs: Any
    ) -> None:
        """Write the state of a graph or a swarm.

        Raises:
            ValueNotSerializableError: JSON cannot hold it; the error names the field.
        """
        place, key = self._multi_agent(session_id, multi_agent.id)
        with naming("multi_agent"):
            _wait(self._put(place, key, multi_agent.serialize_state()))

    def read_multi_agent(
        self, session_id: str, multi_agent_id: str, **kwargs: Any
    ) -> dict[str, Any] | None:
        """Return the state of a graph or a swarm, or `None` if there is none."""
        return _wait(self._read(*self._multi_agent(session_id, multi_agent_id), _object_of))

    def update_multi_agent(
        self, session_id: str, multi_agent: MultiAgentBase, **kwargs: Any
    ) -> None:
        """Replace the state of a graph or a swarm.

        Raises:
            SessionException: There is none.
            ValueNotSerializableError: JSON cannot hold it; the error names the field.
        """
        place, key = self._multi_agent(session_id, multi_agent.id)
        _wait(self._require("multi_agent", place, key))
        self.create_multi_agent(session_id, multi_agent)

    def close(self) -> None:
        """Close the store of a provider string."""
        if self._owned:
            _wait(self.store.close())

    def __enter__(self) -> Self:
        _wait(self.store.open())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _place(self, *labels: str) -> Namespace:
        return (*self._namespace, *labels)

    def _messages(self, session_id: str, agent_id: str) -> Namespace:
        check_identifier(session_id, "session_id")
        return self._place("messages", session_id, _agent_id(agent_id))

    def _multi_agent(self, session_id: str, multi_agent_id: str) -> tuple[Namespace, str]:
        place = self._place("multi_agents", check_identifier(session_id, "session_id"))
        return place, check_identifier(multi_agent_id, "multi_agent.id")

    async def _put(
        self, place: Namespace, key: str, document: Any, *, if_version: int | None = None
    ) -> None:
        try:
            await self.store.put(place, key, document, if_version=if_version, text="")
        except ValueNotSerializableError:
            await self.store.put(place, key, _plain(document), if_version=if_version, text="")

    async def _read(
        self, place: Namespace, key: str, decode: Callable[[StoreItem], _T]
    ) -> _T | None:
        found = await get_readable(self.store, place, key, decode)
        return found[1] if found else None

    async def _stored(
        self, place: Namespace, key: str, decode: Callable[[StoreItem], _T]
    ) -> tuple[bool, _T | None]:
        """Return whether there is an item, and its decoded value if it is readable."""
        try:
            item = await self.store.get_item(place, key)
            return item is not None, None if item is None else decode(item)
        except (*DAMAGE, *NOT_OURS) as error:
            tell_unreadable(place, key, error)
            return True, None

    async def _require(self, what: str, place: Namespace, key: str) -> None:
        exists, _ = await self._stored(place, key, lambda item: item)
        if not exists:
            raise SessionException(f"{what} {quote(key)} does not exist")

    async def _create(
        self, place: Namespace, key: str, document: Any, decode: Callable[[StoreItem], object]
    ) -> None:
        try:
            await self._put(place, key, document, if_version=0)
        except VersionConflictError:
            _, readable_one = await self._stored(place, key, decode)
            if readable_one is not None:
                raise SessionException(f"{quote(key)} exists already") from None
            await self._put(place, key, document)

    async def _update(
        self,
        place: Namespace,
        key: str,
        value: Any,
        decode: Callable[[StoreItem], Any],
    ) -> None:
        exists, previous = await self._stored(place, key, decode)
        if not exists:
            raise SessionException(f"{quote(key)} does not exist")
        if previous is not None:
            value.created_at = previous.created_at
        await self._put(place, key, value.to_dict())

    async def _append(self, place: Namespace, message: SessionMessage) -> None:
        session_id, agent_id = place[-2:]
        if not self._known.get(repr((session_id, agent_id))):
            await self._require("agent", self._place("agents", session_id), agent_id)
            self._known.put(repr((session_id, agent_id)), value=True)
        document = message.to_dict()
        while True:
            try:
                await self._put(place, _number(document["message_id"]), document, if_version=0)
            except VersionConflictError:
                document["message_id"] = await self._next(place)
            else:
                message.message_id = document["message_id"]
                return

    async def _next(self, place: Namespace) -> int:
        """Return the number after the last message, be it damaged or not."""
        try:
            last = [item.key for item in await self.store.scan(place, 1, descending=True)]
        except DAMAGE:
            last = await all_keys(self.store, place)
        return int(last[-1]) + 1 if last else 0

    async def _list(self, place: Namespace, most: int | None, offset: int) -> list[SessionMessage]:
        skipped = await self.store.list_keys(place, offset) if offset else []
        messages: list[SessionMessage] = []
        if len(skipped) == offset:
            after = skipped[-1] if skipped else None
            async for _, message in readable(self.store, place, _message_of, after=after):
                if len(messages) == most:
                    break
                messages.append(message)
        if not messages:
            await self._require("agent", self._place("agents", place[-2]), place[-1])
        return messages

    async def _delete(self, session_id: str) -> None:
        await self._require("session", self._place("sessions"), session_id)
        for kind in ("messages", "agents", "multi_agents"):
            await self.store.clear_namespace(self._place(kind, session_id), recursive=True)
        # Last, so that a deletion that was killed can be repeated.
        await self.store.delete(self._place("sessions"), session_id)
        self._known = RecentlyUsed(_KNOWN)


def _wait(awaitable: Awaitable[_T]) -> _T:
    return shared_bridge().run(awaitable, inside_loop=True)


def _agent_id(agent_id: object) -> str:
    return check_identifier(agent_id, "agent_id")


def _number(message_id: object) -> str:
    return f"{check_limit(message_id, 'message_id'):016d}"


def _plain(document: Any) -> Any:
    """Return a document as the framework's own files hold it: tuples are lists."""
    # What JSON cannot hold is refused by the store, which names the place.
    with suppress(TypeError, ValueError, RecursionError):
        return json.loads(json.dumps(document))
    return document


def _session_of(item: StoreItem) -> Session:
    session = Session.from_dict(_object_of(item))
    session.session_type = SessionType(session.session_type)
    return session


def _agent_of(item: StoreItem) -> SessionAgent:
    value = _object_of(item)
    if not isinstance(value["state"], dict):
        raise TypeError("the state of an agent is an object")
    return SessionAgent.from_dict(value)


def _message_of(item: StoreItem) -> SessionMessage:
    value = _object_of(item)
    if value["message_id"] != int(item.key):
        raise ValueError("a message has the number of its key")
    for message in (value["message"], value["redact_message"] or value["message"]):
        if not isinstance(message["role"], str) or not isinstance(message["content"], list):
            raise TypeError("a message has a role and a list of contents")
    return SessionMessage.from_dict(value)


def _object_of(item: StoreItem) -> dict[str, Any]:
    if not isinstance(item.value, dict):
        raise TypeError("a record is an object")
    return item.value
