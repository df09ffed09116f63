"""Items of the store, as a search looks at them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from locus_memory.retrieval.ranking.fields import Fields

__all__ = ["hit_fields"]


def hit_fields() -> Fields:
    """Return the fields with the text, speaker and place of items and imported turns."""
    from locus_memory.retrieval.ranking.fields import Fields  # noqa: PLC0415 - help must be quick

    return Fields(position=("position", "turn"))
