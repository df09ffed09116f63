"""Namespaces beside those of a caller, for what belongs to items and is none of its own.

An adapter that needs more vectors for an item than the one it has keeps them here. Whoever
erases a namespace for good erases what is beside it, whether there is anything or not.
"""

from __future__ import annotations

from typing import Final

from locus_memory.store.item import Namespace

__all__ = ["FURTHER_VECTORS", "further_vectors"]

FURTHER_VECTORS: Final = "\x00langgraph vectors"
"""The first label of all of them; the NUL keeps it apart from what people choose."""


def further_vectors(namespace: Namespace) -> Namespace:
    """Return where the further vectors of a namespace's items are; `()`: those of all."""
    return (FURTHER_VECTORS, *namespace)
