"""Summaries in a store, so that none is computed again after a restart."""

from __future__ import annotations

from collections.abc import Mapping

from locus_memory._internal.running.paging import batches
from locus_memory.conversation.summary.thread import Summary, Thread
from locus_memory.events import emit
from locus_memory.store.base import BaseStore
from locus_memory.store.item import Namespace

__all__ = ["SummaryStore"]

_PAGE = 500


class SummaryStore:
    """Stores each summary under the digest of its messages; errors of the store are reported.

    Args:
        store: The store.
        namespace: The namespace of the summaries.
        ttl: The seconds for which a summary is kept; `None`: for ever.
    """

    def __init__(self, store: BaseStore, namespace: Namespace, ttl: float | None = None) -> None:
        self._store = store
        self._namespace = namespace
        self._ttl = ttl

    async def newest(self, thread: Thread, after: int) -> Summary | None:
        """Return the summary that covers most of a conversation, if any is stored.

        Args:
            thread: The conversation.
            after: It must cover more messages than this.
        """
        named = list(thread.digests_at(bound for bound in thread.bounds if bound > after))
        try:
            for some in batches(reversed(named), _PAGE):
                if found := await self._newest_of(thread, some):
                    return found
        except Exception as error:  # noqa: BLE001 - reported; it is summarised again instead
            emit("conversation.store_failed", error=error, verb="get_batch")
        return None

    async def _newest_of(self, thread: Thread, named: list[tuple[int, str]]) -> Summary | None:
        values = await self._store.get_batch([(self._namespace, digest) for _, digest in named])
        for bound, digest in named:
            value = values.get((self._namespace, digest))
            if isinstance(value, Mapping) and isinstance(value.get("text"), str):
                return thread.summary_of(bound, value["text"], value.get("about"))
        return None

    async def save(self, summary: Summary) -> None:
        """Store a summary."""
        value = {"text": summary.text, "covered": summary.covered, "root": summary.root}
        value |= {} if summary.about is None else {"about": summary.about}
        try:
            await self._store.put(self._namespace, summary.digest, value, ttl=self._ttl, text="")
        except Exception as error:  # noqa: BLE001 - reported; this process still has it
            emit("conversation.store_failed", error=error, verb="put")
