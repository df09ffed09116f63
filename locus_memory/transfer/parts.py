"""The parts of a backend: one that has only checkpoints, or only a store, is copied as well."""

from __future__ import annotations

from typing import Any

from locus_memory.backends.base import Backend
from locus_memory.checkpoint.base import BaseCheckpointer
from locus_memory.errors import ConfigurationError
from locus_memory.store.base import BaseStore

__all__ = ["checkpointer_of", "store_of"]


def store_of(backend: Backend[Any]) -> BaseStore | None:
    """Return the store of a backend, or `None` if it has none."""
    try:
        return backend.store
    except ConfigurationError:
        return None


def checkpointer_of(backend: Backend[Any]) -> BaseCheckpointer[Any] | None:
    """Return the checkpointer of a backend, or `None` if it has none."""
    try:
        return backend.checkpointer
    except ConfigurationError:
        return None
