"""Options that name models, and the functions that open these models."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from locus_memory.inspection.errors import UsageError

if TYPE_CHECKING:
    from locus_memory.retrieval.embedders.base import Embedder
    from locus_memory.retrieval.rerankers.base import Reranker

__all__ = [
    "EMBEDDER_VARIABLE",
    "BaseUrlOption",
    "EmbedderOption",
    "ModelOption",
    "RerankerOption",
    "open_embedder",
    "open_model",
    "open_reranker",
]

_Made = TypeVar("_Made")

EMBEDDER_VARIABLE = "LOCUS_MEMORY_EMBEDDER"

EmbedderOption = Annotated[
    str | None,
    typer.Option(
        "--embedder",
        metavar="NAME",
        envvar=EMBEDDER_VARIABLE,
        help="Embedding model, such as local or openai:text-embedding-3-small.",
    ),
]
RerankerOption = Annotated[
    str | None,
    typer.Option(
        "--reranker",
        metavar="NAME",
        help="Reranker of the best hits: late-interaction or cross-encoder.",
    ),
]


ModelOption = Annotated[
    str | None,
    typer.Option(
        "--model",
        metavar="NAME",
        help="Model of an OpenAI-compatible endpoint, or a string such as openai:gpt-4.1-mini.",
    ),
]
BaseUrlOption = Annotated[
    str | None,
    typer.Option("--base-url", metavar="URL", help="Endpoint of the model; it gets no key."),
]


def open_model(
    name: str, base_url: str | None, *, option: str = "--model", endpoint: str = "--base-url"
) -> Any:
    """Return the model of a string for `get_model`, or of the name of an endpoint's model.

    Args:
        name: The string or the name.
        base_url: The endpoint; it gets no key.
        option: The option that named the model, for messages.
        endpoint: The option that names the endpoint, likewise.

    Raises:
        UsageError: It has neither a key nor an endpoint, or it takes no endpoint.
        MissingDriverError: The client is not installed.
    """
    from locus_memory.chat.registry import get_model, list_models  # noqa: PLC0415 - help must be quick
    from locus_memory.errors import (  # noqa: PLC0415 - the same
        ConfigurationError,
        MissingDriverError,
        UnknownOptionError,
    )

    provider = name.partition(":")[0].lower()
    where = name if provider in list_models() else f"openai:{name}"
    try:
        return get_model(where, **({} if base_url is None else {"base_url": base_url}))
    except MissingDriverError:
        raise
    except UnknownOptionError:
        raise UsageError(f"{endpoint}: the model {provider!r} takes no endpoint") from None
    except ConfigurationError as error:
        if not where.startswith("openai:"):
            raise UsageError(f"{option}: {error}") from None
        raise UsageError(
            f"{option} needs OPENAI_API_KEY, or an endpoint named with {endpoint}"
        ) from None


def open_embedder(name: str) -> Embedder:
    """Return the embedder with this name.

    Raises:
        UsageError: The name is unknown.
        ConfigurationError: The model is not available.
    """
    from locus_memory.retrieval.embedders.registry import get_embedder  # noqa: PLC0415 - help must be quick

    return _opened(get_embedder, name, "--embedder")


def open_reranker(name: str) -> Reranker:
    """Return the reranker with this name; errors as of `open_embedder`."""
    from locus_memory.retrieval.rerankers.registry import get_reranker  # noqa: PLC0415 - help must be quick

    return _opened(get_reranker, name, "--reranker")


def _opened(get: Callable[[str], _Made], name: str, option: str) -> _Made:
    from locus_memory.errors import UnknownProviderError  # noqa: PLC0415 - help must be quick

    try:
        return get(name)
    except UnknownProviderError as error:
        raise UsageError(f"{option}: {error}") from None
