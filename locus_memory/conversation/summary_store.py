"""Summaries in a store, so that a restart asks for none of them again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from locus_memory.conversation.summary_thread import Summary, Thread
from locus_memory.events import emit
from locus_memory.store.base import BaseStore
from locus_memory.store.item import Namespace

__all__ = ["SummaryStore"]

_PAGE = 500


class SummaryStore:
    """Keeps each summary under the digest of what it covers; a failing store is no failure.

    Args:
        store: Where.
        namespace: Where in it.
    """

    def __init__(self, store: BaseStore, namespace: Namespace) -> None:
        self._store = store
        self._namespace = namespace

    async def newest(self, thread: Thread, after: int) -> Summary | None:
        """Return the summary that covers most of a conversation, if any is stored.

        Args:
            thread: The conversation.
            after: It must cover more messages than this.
        """
        named = dict(thread.digests_at(bound for bound in thread.bounds if bound > after))
        bounds = sorted(named, reverse=True)
        try:
            for start in range(0, len(bounds), _PAGE):
                page = [named[bound] for bound in bounds[start : start + _PAGE]]
                texts = await self._texts(page)
                for bound in bounds[start : start + _PAGE]:
                    if named[bound] in texts:
                        return thread.summary_of(bound, texts[named[bound]])
        except Exception as error:  # noqa: BLE001 - reported; it is summarised again instead
            emit("conversation.store_failed", error=error, verb="get_batch")
        return None

    async def _texts(self, digests: Sequence[str]) -> dict[str, str]:
        values = await self._store.get_batch([(self._namespace, key) for key in digests])
        return {key: value["text"] for (_, key), value in values.items() if _is_stored(value)}

    async def save(self, summary: Summary) -> None:
        """Store a summary."""
        value = {"text": summary.text, "covered": summary.covered}
        try:
            await self._store.put(self._namespace, summary.digest, value, text="")
        except Exception as error:  # noqa: BLE001 - reported; this process still has it
            emit("conversation.store_failed", error=error, verb="put")


def _is_stored(value: Any) -> bool:
    return isinstance(value, Mapping) and isinstance(value.get("text"), str)
