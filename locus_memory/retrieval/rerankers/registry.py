"""Rerankers by name: from a string to a reranker."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from locus_memory._internal.providers.models import ModelRow, ModelTable
from locus_memory.retrieval.rerankers.base import Reranker

__all__ = ["get_reranker", "list_rerankers", "register_reranker"]

_HERE: Final = "locus_memory.retrieval.rerankers"

_TABLE: Final = ModelTable[Reranker](
    "reranker",
    Reranker,
    {
        "cross-encoder": ModelRow(f"{_HERE}.cross_encoder:CrossEncoderReranker", "folder"),
        "late-interaction": ModelRow(f"{_HERE}.late_interaction:LateInteractionReranker", "folder"),
    },
)


def get_reranker(where: str, **options: Any) -> Reranker:
    """Return a new reranker.

    Args:
        where: `"late-interaction"` or `"cross-encoder"`; after a colon, the model's folder.
        **options: Keyword arguments of its class.

    Raises:
        UnknownProviderError: The name is not registered; the message lists the known ones.
        UnknownOptionError: Its class has no such option.
        MissingDriverError: A package that it needs is not installed.
        ConfigurationError: The model does not exist, or an invalid string.
    """
    return _TABLE.make(where, options)


def list_rerankers() -> list[str]:
    """Return the names that `get_reranker` accepts, in alphabetical order."""
    return _TABLE.names()


def register_reranker(name: str, factory: Callable[..., Reranker]) -> Callable[[], None]:
    """Register your own reranker as `name`; it takes precedence over a built-in one.

    Args:
        name: The name, as strings spell it before the colon.
        factory: Called with the part after the colon, or `None`, and the caller's options.

    Returns:
        A function that unregisters it.

    Raises:
        ConfigurationError: The name is not valid in such a string.
    """
    return _TABLE.register(name, factory)
