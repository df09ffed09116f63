"""The history of sessions of the Agent Framework; public as `integrations.agent_framework`."""

# The framework is installed in an environment of its own.
# mypy: disable-error-code="import-not-found, misc"
# pyright: reportMissingImports=false, reportUnknownParameterType=false
# pyright: reportUntypedBaseClass=false, reportAttributeAccessIssue=false, reportCallIssue=false

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from agent_framework import HistoryProvider, Message

from locus_memory.backends.base import Backend
from locus_memory.integrations.log import Entry, Log
from locus_memory.integrations.owned import OverStore
from locus_memory.integrations.reading import NOT_OURS, tell_unreadable
from locus_memory.store.base import BaseStore
from locus_memory.store.item import Namespace, check_namespace

__all__ = ["LocusHistoryProvider"]

_NAMESPACE: Final = ("agent_framework",)
_NO_SESSION: Final = "default"


class LocusHistoryProvider(OverStore, HistoryProvider):
    """A `HistoryProvider` that keeps the messages of sessions in any store of the library.

    Several processes may use one session: nothing is lost, and all of them see one order. A message
    that cannot be read is left out, and told by the event `integrations.item_unreadable`.

    Args:
        where: A provider string, a backend or a store of the library, such as an
            `EncryptingStore`. Only the store of a string is closed here.
        source_id: The name of the provider among those of an agent.
        namespace: The namespace of all sessions in the store.
        ttl: Seconds until a message expires; `None`: never.
        **options: Those of `HistoryProvider`, such as `store_context_messages`.

    Raises:
        InvalidNamespaceError: The namespace is invalid.
        ConfigurationError: `where` has no store.
    """

    def __init__(
        self,
        where: str | BaseStore | Backend,
        source_id: str = "locus_history",
        *,
        namespace: Namespace = _NAMESPACE,
        ttl: float | None = None,
        **options: Any,
    ) -> None:
        super().__init__(source_id, **options)
        self._place, self._ttl = check_namespace(namespace), ttl
        self._take(where)

    async def get_messages(
        self, session_id: str | None, *, state: dict[str, Any] | None = None, **kwargs: Any
    ) -> list[Message]:
        """Return the messages of a session, the oldest first.

        Raises:
            BackendError: The database failed.
        """
        del state, kwargs
        read = map(_message, await self._log(session_id).read())
        return [each for each in read if each is not None]

    async def save_messages(
        self,
        session_id: str | None,
        messages: Sequence[Message],
        *,
        state: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Append messages to a session, without those at the start that it ends with already.

        Raises:
            ValueNotSerializableError: JSON cannot hold a message. Nothing is written.
            BackendError: The database failed.
        """
        del state, kwargs
        # A caller may send the whole conversation again: the framework's own providers drop it too.
        from agent_framework._sessions import filter_new_messages  # noqa: PLC0415 - not public

        stored = await self.get_messages(session_id)
        new = [each.to_dict() for each in filter_new_messages(stored, messages)]
        if new:
            await self._log(session_id).append(new)

    async def delete_session(self, session_id: str | None) -> None:
        """Delete all messages of a session.

        Raises:
            BackendError: The database failed.
        """
        await self._log(session_id).clear()

    def _log(self, session_id: str | None) -> Log:
        return Log(self.store, (*self._place, session_id or _NO_SESSION), self._ttl)


def _message(entry: Entry) -> Message | None:
    try:
        return Message.from_dict(entry.item)
    except (*NOT_OURS, AttributeError) as error:
        tell_unreadable(entry.stored.namespace, entry.key, error)
        return None
