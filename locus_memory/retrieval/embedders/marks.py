"""Marks: the metadata of an item names the model of its vector.

Vectors of two models cannot be compared, even if they have the same length. So a write of an
embedder's vector also marks the item, and a search checks the marks of its hits. A mark is written
and deleted together with its vector, needs no extra request, and shows exactly which items still
have to be embedded again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Self

from locus_memory._internal.quoting import quote
from locus_memory.errors import ConfigurationError
from locus_memory.retrieval.embedders.base import Embedder
from locus_memory.store.base import BaseStore
from locus_memory.store.item import Namespace, PutT, StoreItem

__all__ = [
    "MARK",
    "EmbeddingMark",
    "check_marks",
    "check_newest_mark",
    "embedded_put",
    "mark_of",
    "marked",
    "unmarked",
    "without_mark",
]

MARK: Final = "locus_memory:embedding"
"""The reserved key of the metadata."""

_MODEL: Final = "model"
_DIMENSION: Final = "dimension"
_TEXT: Final = "text"
_SOURCE: Final = "source"


@dataclass(frozen=True, slots=True)
class EmbeddingMark:
    """The model and the source of a vector.

    Attributes:
        model: The name of the embedder.
        dimension: The vector's length.
        text: The `text` that the item was put with, which no store returns; `None`: none.
        source: The text that was embedded; `None`: `text`, or without it the value's strings.
    """

    model: str
    dimension: int
    text: str | None = None
    source: str | None = None

    @classmethod
    def by(cls, embedder: Embedder, text: str | None = None, source: str | None = None) -> Self:
        """Return the mark of a vector of the embedder."""
        return cls(embedder.name, embedder.dimension, text, source)

    def made_by(self, embedder: Embedder) -> bool:
        """Whether the embedder's vectors can be compared with this vector."""
        return (self.model, self.dimension) == (embedder.name, embedder.dimension)


def marked(metadata: Mapping[str, Any] | None, mark: EmbeddingMark) -> dict[str, Any]:
    """Return the metadata with the mark in it."""
    written: dict[str, Any] = {_MODEL: mark.model, _DIMENSION: mark.dimension}
    texts = {_TEXT: mark.text, _SOURCE: mark.source}
    written |= {name: text for name, text in texts.items() if text is not None}
    return {**(metadata or {}), MARK: written}


def embedded_put(
    put: PutT,
    vector: Sequence[float],
    embedder: Embedder,
    *,
    source: str | None = None,
    keep_text: bool = True,
) -> PutT:
    """Return the put with a vector and its mark, so that `reembed` can recompute the vector.

    Args:
        put: The put to store.
        vector: The vector, of shape `(dimension,)`.
        embedder: The embedder of the vector.
        source: The embedded text; `None`: the put's text, or without one the value's strings.
        keep_text: Whether the mark keeps the put's text; false if the store must not see it.
    """
    mark = EmbeddingMark.by(embedder, put.text if keep_text else None, source)
    return replace(put, embedding=vector, metadata=marked(put.metadata, mark))


def unmarked(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return the metadata without a mark."""
    return {name: value for name, value in metadata.items() if name != MARK}


def without_mark(item: StoreItem) -> StoreItem:
    """Return the item as it was put, without a mark."""
    return replace(item, metadata=unmarked(item.metadata)) if MARK in item.metadata else item


def mark_of(metadata: Mapping[str, Any]) -> EmbeddingMark | None:
    """Return the mark in the metadata; `None`: there is none."""
    try:
        written = metadata[MARK]
        return EmbeddingMark(
            written[_MODEL], written[_DIMENSION], written.get(_TEXT), written.get(_SOURCE)
        )
    except (KeyError, TypeError, AttributeError):
        return None


def check_marks(items: Iterable[StoreItem], embedder: Embedder, namespace: Namespace) -> None:
    """Check that no marked item has the vector of another model.

    Args:
        items: The items, such as the hits of a search, or one item of the namespace.
        embedder: The embedder of the query.
        namespace: The searched namespace, for the message.

    Raises:
        ConfigurationError: An item has one. The message names both models.
    """
    name, dimension = embedder.name, embedder.dimension
    for item in items:
        written = item.metadata.get(MARK)
        # Every hit of every search is checked, and nearly all have the expected mark.
        if written is None or (
            isinstance(written, dict)
            and written.get(_MODEL) == name
            and written.get(_DIMENSION) == dimension
        ):
            continue
        mark = mark_of(item.metadata)
        if mark is not None:
            raise ConfigurationError(
                f"the vectors in {quote(namespace)} are of {mark.model} ({mark.dimension} "
                f"dimensions), those of {embedder.name} ({embedder.dimension}) cannot be "
                "compared with them; recompute them: locus-memory reembed"
            )


async def check_newest_mark(
    store: BaseStore, embedder: Embedder, namespace: Namespace, *, recursive: bool = False
) -> None:
    """Check that the vectors of a namespace, if any is marked, are the embedder's.

    Args:
        store: The store.
        embedder: The expected embedder.
        namespace: The namespace to check.
        recursive: Whether to check its descendants as well.

    Raises:
        ConfigurationError: They are of another model. The message names both models.
        BackendError: The store failed.
    """
    newest = await store.search(
        namespace, None, 1, filter={MARK: {"$exists": True}}, recursive=recursive
    )
    check_marks(newest, embedder, namespace)
