"""The session for the OpenAI Agents SDK; public as `integrations.openai_agents`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, cast

from agents import SessionSettings, TResponseInputItem
from agents.memory.session import (
    _CompactionSnapshot,  # pyright: ignore[reportPrivateUsage] # what its compaction asks for
)
from agents.memory.session_settings import coerce_session_settings, resolve_session_limit

from locus_memory.backends.base import Backend
from locus_memory.errors import InvalidArgumentError
from locus_memory.integrations.log import Log
from locus_memory.integrations.openai_agents.usage import Usages
from locus_memory.integrations.owned import OverStore
from locus_memory.integrations.reading import naming
from locus_memory.store.base import BaseStore
from locus_memory.store.item import Namespace, check_identifier, check_limit, check_namespace
from locus_memory.store.item import check_ttl as checked_ttl
from locus_memory.store.json_values import encode_json

__all__ = ["LocusSession"]

_NAMESPACE: Final = ("openai_agents",)


class LocusSession(OverStore, Usages):
    """A `Session` of the OpenAI Agents SDK that keeps its items in any store of the library.

    ```python
    session = LocusSession("ada", "postgresql:mydb", ttl=30 * 86_400)
    result = await Runner.run(agent, "Hello", session=session)
    ```

    Several processes may use one session: nothing is lost, the items of one `add_items` stay next
    to each other where the store has transactions, and all processes see one order. A damaged item
    is left out and told by the event `integrations.item_unreadable`. A branch has items of its own,
    see `create_branch_from_turn`; `clear_session` deletes all branches.

    Args:
        session_id: The id of the session, any non-empty string.
        where: A provider string, a backend or a store of the library, such as an
            `EncryptingStore`. Only the store of a string is closed here.
        session_settings: The SDK's settings, of which `limit` is the default of `get_items`.
        ttl: Seconds until an item expires; the same for all who use the session. `None`: never.
        namespace: The namespace of all sessions in the store.
        branch: The branch to begin with.

    Raises:
        InvalidArgumentError: `session_id`, `ttl`, `namespace` or `branch` is invalid.
        ConfigurationError: `where` has no store.
    """

    session_settings: SessionSettings | None

    def __init__(
        self,
        session_id: str,
        where: str | BaseStore | Backend = "memory",
        *,
        session_settings: SessionSettings | Mapping[str, Any] | None = None,
        ttl: float | None = None,
        namespace: Namespace = _NAMESPACE,
        branch: str = "main",
    ) -> None:
        self.session_id = check_identifier(session_id, "session_id")
        self.session_settings = coerce_session_settings(
            SessionSettings() if session_settings is None else cast("Any", session_settings)
        )
        place = (*check_namespace(namespace), session_id)
        check_identifier(branch, "branch")
        super().__init__(self._take(where), place, checked_ttl(ttl), branch)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.session_id!r}, {self.store!r})"

    async def get_items(
        self, limit: int | None = None, branch_id: str | None = None
    ) -> list[TResponseInputItem]:
        """Return the items, the oldest first.

        Args:
            limit: Only the last so many; `None`: the limit of `session_settings`, if it has one.
            branch_id: The branch; `None`: the current one.

        Raises:
            InvalidArgumentError: The limit is negative.
            BackendError: The database failed.
        """
        limit = resolve_session_limit(limit, self.session_settings)
        entries = await self._read(branch_id, None if limit is None else check_limit(limit))
        return _items(entry.item for entry in entries)

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Append items.

        Raises:
            ValueNotSerializableError: JSON cannot hold an item; it names the field, such as
                `items[1].content`. Nothing is written.
            InvalidArgumentError: An item is not an object. Nothing is written.
            BackendError: The database failed.
        """
        if checked := _checked(items):
            await self._changed(lambda log: log.append(checked))

    async def pop_item(self) -> TResponseInputItem | None:
        """Remove and return the last item, or `None` if there is none."""
        return cast("TResponseInputItem | None", await self._changed(Log.pop))

    async def _get_compaction_snapshot(
        self, limit: int, *, prune_prefix: Callable[[TResponseInputItem], bool] | None = None
    ) -> _CompactionSnapshot | None:
        """Return the last items, and the function that replaces some of them in one transaction.

        `OpenAIResponsesCompactionSession` looks for this method. Where the store has no
        transactions, it replaces the whole history in several steps instead.
        """
        log = self._log
        tail = await log.tail(limit)
        if tail is None or not self.store.capabilities.transactions:
            return None

        async def replace_suffix(start: int, output: list[TResponseInputItem]) -> bool:
            if not tail.entries[start:]:
                return False
            is_outdated = cast("Callable[[dict[str, Any]], bool] | None", prune_prefix)
            outdated = (
                await log.outdated(tail.entries[start].key, is_outdated) if is_outdated else []
            )
            return await log.replace(tail, start, _checked(output), outdated)

        items = _items(entry.item for entry in tail.entries)
        return _CompactionSnapshot(items, tail.complete, replace_suffix)


def _items(items: Any) -> list[TResponseInputItem]:
    return cast("list[TResponseInputItem]", list(items))


def _checked(items: Sequence[object]) -> list[dict[str, Any]]:
    """Return the items if JSON can hold every one of them.

    Raises:
        InvalidArgumentError: It cannot; the error names the item and its field.
    """
    checked: list[dict[str, Any]] = []
    for index, item in enumerate(items):
        if not isinstance(item, dict):
            raise InvalidArgumentError(f"items[{index}] is an object, not {type(item).__name__}")
        with naming(f"items[{index}]"):
            encode_json(item)
        checked.append(item)
    return checked
