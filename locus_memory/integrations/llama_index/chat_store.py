"""The chat store for LlamaIndex; public as `integrations.llama_index`."""

# LlamaIndex is installed in an environment of its own.
# mypy: disable-error-code="import-not-found, misc"
# pyright: reportMissingImports=false, reportUnknownParameterType=false
# pyright: reportUntypedBaseClass=false

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.storage.chat_store.base_db import AsyncDBChatStore, MessageStatus

from locus_memory.backends.base import Backend
from locus_memory.integrations.log import Entry, Item, Log
from locus_memory.integrations.reading import NOT_OURS, labels_below, tell_unreadable
from locus_memory.store.base import BaseStore
from locus_memory.store.item import Namespace, check_identifier, check_limit, check_namespace
from locus_memory.store.opening import store_of

__all__ = ["LocusChatStore"]

_NAMESPACE: Final = ("llama_index",)
_ACTIVE: Final = MessageStatus.ACTIVE


class LocusChatStore(AsyncDBChatStore):
    """An `AsyncDBChatStore` that keeps the messages of conversations in any store of the library.

    Several processes may use one conversation: nothing is lost, and all of them see one order. A
    message that cannot be read is left out, and told by the event `integrations.item_unreadable`.
    All methods raise `BackendError` if the database fails.

    Args:
        where: A provider string, a backend or a store of the library, such as an
            `EncryptingStore`. Only the store of a string is closed, by `close`.
        namespace: The namespace of all conversations in the store.
        ttl: Seconds until a message expires; `None`: never.

    Raises:
        InvalidNamespaceError: The namespace is invalid.
        ConfigurationError: `where` has no store.
    """

    _store: BaseStore = PrivateAttr()
    _owned: bool = PrivateAttr()
    _place: Namespace = PrivateAttr()
    _ttl: float | None = PrivateAttr()

    def __init__(
        self,
        where: str | BaseStore | Backend,
        *,
        namespace: Namespace = _NAMESPACE,
        ttl: float | None = None,
    ) -> None:
        super().__init__()
        self._store, self._owned = store_of(where)
        self._place, self._ttl = check_namespace(namespace), ttl

    async def get_messages(
        self,
        key: str,
        status: MessageStatus | None = _ACTIVE,
        limit: int | None = None,
        offset: int | None = None,
    ) -> list[ChatMessage]:
        """Return the messages with a status, or all of them, the oldest first."""
        begin = offset or 0
        end = None if limit is None else begin + check_limit(limit)
        entries = _with(await self._log(key).read(), status)
        return _messages(entries[begin:end])

    async def count_messages(self, key: str, status: MessageStatus | None = _ACTIVE) -> int:
        """Return how many messages have a status, or how many there are."""
        return len(_with(await self._log(key).read(), status))

    async def add_message(
        self, key: str, message: ChatMessage, status: MessageStatus = _ACTIVE
    ) -> None:
        """Append a message."""
        await self.add_messages(key, [message], status)

    async def add_messages(
        self, key: str, messages: list[ChatMessage], status: MessageStatus = _ACTIVE
    ) -> None:
        """Append messages, next to each other where the store has transactions."""
        if messages:
            await self._log(key).append(_items(messages, status))

    async def set_messages(
        self, key: str, messages: list[ChatMessage], status: MessageStatus = _ACTIVE
    ) -> None:
        """Replace all messages, whatever their status."""
        await self._log(key).edit(
            lambda found: {each.key: None for each in found}, _items(messages, status)
        )

    async def delete_message(self, key: str, idx: int) -> ChatMessage | None:
        """Delete and return the message with a number; 1 is the first that the key ever had."""
        deleted = await self._taken(key, lambda found: [e for e in found if int(e.key) == idx])
        return deleted[0] if deleted else None

    async def delete_messages(self, key: str, status: MessageStatus | None = None) -> None:
        """Delete the messages with a status, or all of them, the damaged ones included."""
        if status is None:
            await self._log(key).clear()
        else:
            await self._taken(key, lambda found: _with(found, status))

    async def delete_oldest_messages(self, key: str, n: int) -> list[ChatMessage]:
        """Delete the oldest active messages, and return them."""
        return await self._taken(key, lambda found: _with(found, _ACTIVE)[: check_limit(n)])

    async def archive_oldest_messages(self, key: str, n: int) -> list[ChatMessage]:
        """Archive the oldest active messages, and return them."""
        archived = {"status": MessageStatus.ARCHIVED.value}
        choose = lambda found: _with(found, _ACTIVE)[: check_limit(n)]  # noqa: E731 - as above
        return await self._taken(key, choose, lambda entry: {**entry.item, **archived})

    async def get_keys(self) -> list[str]:
        """Return the keys that have messages."""
        names = [name async for name in labels_below(self._store, self._place)]
        return [name for name in names if await self._log(name).read(1)]

    async def close(self) -> None:
        """Close the store of a provider string."""
        if self._owned:
            await self._store.close()

    async def _taken(
        self,
        key: str,
        choose: Callable[[list[Entry]], list[Entry]],
        replaced: Callable[[Entry], Item | None] = lambda _: None,
    ) -> list[ChatMessage]:
        """Replace or delete the messages that are chosen, and return them as they were."""
        chosen: list[Entry] = []

        def change(found: list[Entry]) -> dict[str, Item | None]:
            nonlocal chosen
            chosen = choose(found)
            return {each.key: replaced(each) for each in chosen}

        await self._log(key).edit(change)
        return _messages(chosen)

    def _log(self, key: str) -> Log:
        return Log(self._store, (*self._place, check_identifier(key, "key")), self._ttl)


def _with(entries: Sequence[Entry], status: MessageStatus | None) -> list[Entry]:
    wanted = None if status is None else MessageStatus(status).value
    return [each for each in entries if wanted in {None, each.item.get("status")}]


def _items(messages: Sequence[ChatMessage], status: MessageStatus) -> list[Item]:
    return [
        {"status": MessageStatus(status).value, "data": each.model_dump(mode="json")}
        for each in messages
    ]


def _messages(entries: Sequence[Entry]) -> list[ChatMessage]:
    return [each for each in map(_message, entries) if each is not None]


def _message(entry: Entry) -> ChatMessage | None:
    try:
        return ChatMessage.model_validate(entry.item["data"])
    except NOT_OURS as error:
        tell_unreadable(entry.stored.namespace, entry.key, error)
        return None
