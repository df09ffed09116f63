"""From a string to a reranker."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from locus_memory.retrieval.embedders.table import ModelRow, ModelTable
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
        UnknownProviderError: Nobody knows the name; the message lists the known ones.
        UnknownOptionError: Its class has no such option.
        MissingDriverError: What it needs is not installed.
        ConfigurationError: The model is not there, or a bad string.
    """
    return _TABLE.make(where, options)


def list_rerankers() -> list[str]:
    """Return the names that `get_reranker` knows, in alphabetical order."""
    return _TABLE.names()


def register_reranker(name: str, factory: Callable[..., Reranker]) -> Callable[[], None]:
    """Let `name` mean a reranker of your own; it wins over a built-in one of that name.

    Args:
        name: What strings start with.
        factory: Called with what follows the colon, or `None`, and the caller's options.

    Returns:
        A function that takes it back.

    Raises:
        ConfigurationError: The name cannot stand in such a string.
    """
    return _TABLE.register(name, factory)
