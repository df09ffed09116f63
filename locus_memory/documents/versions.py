"""The one version of each source that a search shows while the source is replaced."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import replace
from typing import Any, Final

from locus_memory.documents.layout import shown_by, sources_of
from locus_memory.retrieval.hybrid import Hit, SearchResult
from locus_memory.store.base import BaseStore
from locus_memory.store.item import Namespace

__all__ = ["search_shown"]

_ROUNDS: Final = 4


async def search_shown(
    store: BaseStore,
    namespace: Namespace,
    search: Callable[..., Awaitable[SearchResult]],
    condition: Mapping[str, Any] | None,
) -> SearchResult:
    """Return the hits of a search, without the chunks of versions that are not to be seen.

    The record of a source names the version that is shown. It changes at once, when all chunks of
    the new version are written, and before those of the old one are deleted.

    Args:
        store: The store.
        namespace: The namespace of the index.
        search: Returns the hits that match its `filter`.
        condition: The filter, or `None`.
    """
    hidden: set[str] = set()
    rounds = 0
    while True:
        found = await search(filter=_without(condition, hidden))
        sources = {name for each in found if (name := _named(each, "source"))}
        names = [(sources_of(namespace), each) for each in sources]
        records = {key: value for (_, key), value in (await store.get_batch(names)).items()}
        kept = tuple(each for each in found if _is_shown(each, records))
        rounds += 1
        if len(kept) == len(found) or rounds == _ROUNDS:
            return replace(found, hits=kept)
        # Many chunks of one hidden version would crowd out all others. And the version to show may
        # have been written since.
        hidden |= {_named(each, "document") for each in found if not _is_shown(each, records)}


def _named(hit: Hit, name: str) -> str:
    """Return the source or the document of a hit."""
    value = hit.item.metadata.get(name, "")
    return value if isinstance(value, str) else ""


def _is_shown(hit: Hit, records: Mapping[str, Any]) -> bool:
    record = records.get(_named(hit, "source"))
    return record is None or shown_by(record, _named(hit, "document"))


def _without(
    condition: Mapping[str, Any] | None, hidden: Collection[str]
) -> Mapping[str, Any] | None:
    """Return a filter that leaves out documents as well."""
    left_out = {"document": {"$nin": sorted(hidden)}}
    if not hidden:
        return condition
    return left_out if condition is None else {"$and": [condition, left_out]}
