"""Items of the store, as a search looks at them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from locus_memory.retrieval.ranking.fields import Fields
    from locus_memory.store.item import StoreItem

__all__ = ["hit_fields", "is_fact"]


def is_fact(item: StoreItem) -> bool:
    """Return whether an item is a current memory of a user."""
    return item.namespace[-3:-2] == ("users",) and item.namespace[-1] == "current"


@cache
def hit_fields() -> Fields:
    """Return the fields with the text, speaker and place of items and imported turns.

    A memory of a user is read as said by the user, so that a question may name whom it is about.
    """
    from locus_memory.retrieval.ranking.fields import Fields  # noqa: PLC0415 - help must be quick

    class HitFields(Fields):
        def told(self, item: StoreItem) -> Mapping[str, Any]:
            told = super().told(item)
            return {"speaker": item.namespace[-2], **told} if is_fact(item) else told

    return HitFields(position=("position", "turn"))
