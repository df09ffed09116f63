"""Embedders by name: from a string to an embedder."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from locus_memory._internal.providers.models import ModelRow, ModelTable
from locus_memory.errors import ConfigurationError
from locus_memory.retrieval.embedders.base import Embedder
from locus_memory.retrieval.embedders.function import CallableEmbedder

__all__ = ["as_embedder", "get_embedder", "list_embedders", "register_embedder"]

_HERE: Final = "locus_memory.retrieval.embedders"

_TABLE: Final = ModelTable[Embedder](
    "embedder",
    Embedder,
    {
        "local": ModelRow(f"{_HERE}.local:open_local", "folder"),
        "static": ModelRow(f"{_HERE}.static:StaticEmbedder", "path"),
        "openai": ModelRow(f"{_HERE}.openai:OpenAIEmbedder", "model"),
        "fastembed": ModelRow(f"{_HERE}.fastembed:FastEmbedEmbedder", "model"),
        "universal": ModelRow(f"{_HERE}.universal:open_universal"),
        "multilingual": ModelRow(f"{_HERE}.fastembed:open_multilingual", "model"),
        "model2vec": ModelRow(f"{_HERE}.model2vec:Model2VecEmbedder", "model"),
    },
)


def get_embedder(where: str, **options: Any) -> Embedder:
    """Return a new embedder.

    Args:
        where: Its name and, after a colon, its model: `"local"`, `"local:/path/to/folder"`,
            `"static:/path/to/folder"`, `"openai:text-embedding-3-small"`,
            `"fastembed:BAAI/bge-base-en-v1.5"`, `"multilingual"`, `"universal"`,
            `"model2vec:minishlab/potion-retrieval-32M"`.
        **options: Keyword arguments of its class.

    Raises:
        UnknownProviderError: The name is not registered; the message lists the known ones.
        UnknownOptionError: Its class has no such option.
        MissingDriverError: A package that it needs is not installed.
        ConfigurationError: The model does not exist, or an invalid string.
    """
    return _TABLE.make(where, options)


def as_embedder(where: object) -> Embedder:
    """Return an embedder.

    Args:
        where: An embedder; a string that names one; or an object of another library with
            `embed(texts)`, which returns an array of shape `(n, dim)`, and `dim()`. It runs in a
            worker thread, and its name is its `name` or else that of its class.

    Raises:
        ConfigurationError: It is none of these, or as for `get_embedder`.
    """
    if isinstance(where, str):
        return get_embedder(where)
    if not isinstance(where, type | Embedder):
        dim: Any = getattr(where, "dim", None)
        embed: Any = getattr(where, "embed", None)
        if callable(dim) and callable(embed):
            name = getattr(where, "name", None)
            kind = type(where)
            named = name if isinstance(name, str) else f"{kind.__module__}.{kind.__qualname__}"
            dimension: Any = dim()
            return CallableEmbedder(embed, name=named, dimension=int(dimension))
    if not isinstance(where, Embedder) or isinstance(where, type):
        raise ConfigurationError(
            "an embedder has a name, a dimension and embed(texts, kind=...); "
            f"{type(where).__name__} lacks them"
        )
    return where


def list_embedders() -> list[str]:
    """Return the names that `get_embedder` accepts, in alphabetical order."""
    return _TABLE.names()


def register_embedder(name: str, factory: Callable[..., Embedder]) -> Callable[[], None]:
    """Register your own embedder as `name`; it takes precedence over a built-in one.

    Args:
        name: The name, as strings spell it before the colon.
        factory: Called with the part after the colon, or `None`, and the caller's options.

    Returns:
        A function that unregisters it.

    Raises:
        ConfigurationError: The name is not valid in such a string.
    """
    return _TABLE.register(name, factory)
