"""Options that name models, and the functions that open these models."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from locus_memory.cli.printing.outcome import UsageError

if TYPE_CHECKING:
    from locus_memory.retrieval.embedders.base import Embedder
    from locus_memory.retrieval.rerankers.base import Reranker

__all__ = [
    "EMBEDDER_VARIABLE",
    "EmbedderOption",
    "RerankerOption",
    "open_embedder",
    "open_reranker",
]

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


def open_embedder(name: str) -> Embedder:
    """Return the embedder with this name.

    Raises:
        UsageError: The name is unknown.
        ConfigurationError: The model is not available.
    """
    from locus_memory.errors import UnknownProviderError  # noqa: PLC0415 - help must be quick
    from locus_memory.retrieval.embedders.registry import get_embedder  # noqa: PLC0415 - the same

    try:
        return get_embedder(name)
    except UnknownProviderError as error:
        raise UsageError(f"--embedder: {error}") from None


def open_reranker(name: str) -> Reranker:
    """Return the reranker with this name.

    Raises:
        UsageError: The name is unknown.
        ConfigurationError: The model is not available.
    """
    from locus_memory.errors import UnknownProviderError  # noqa: PLC0415 - help must be quick
    from locus_memory.retrieval.rerankers.registry import get_reranker  # noqa: PLC0415 - the same

    try:
        return get_reranker(name)
    except UnknownProviderError as error:
        raise UsageError(f"--reranker: {error}") from None
