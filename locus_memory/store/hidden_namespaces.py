"""Hidden namespaces beside those of a caller, for further vectors of its items.

An adapter that needs more than one vector per item keeps the others here. Erasing a namespace also
erases its hidden namespace, if there is one.
"""

from __future__ import annotations

from typing import Final

from locus_memory.store.item import Namespace

__all__ = ["FURTHER_VECTORS", "further_vectors"]

FURTHER_VECTORS: Final = "\x00langgraph vectors"
"""The first label of all hidden namespaces; the NUL separates it from labels of callers."""


def further_vectors(namespace: Namespace) -> Namespace:
    """Return the hidden namespace of the vectors of a namespace; `()`: of all namespaces."""
    return (FURTHER_VECTORS, *namespace)
