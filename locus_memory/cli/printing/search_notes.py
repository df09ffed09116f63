"""Notes on stderr about the parts that a search had to do without."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from locus_memory.cli.printing.output import note
from locus_memory.cli.printing.unlogged import unlogged

if TYPE_CHECKING:
    from locus_memory.events import Event

__all__ = ["search_notes"]


@contextmanager
def search_notes(*, has_embedder: bool) -> Generator[None]:
    """Print a note, once, for each part that a search does without.

    Args:
        has_embedder: Whether an embedder was given; without one, text search is expected.
    """
    from locus_memory.events import subscribe  # noqa: PLC0415 - help must be quick

    told: set[str] = set()

    def tell(event: Event) -> None:
        text = _text(event, has_embedder=has_embedder)
        if text and text not in told:
            told.add(text)
            note(text)

    unsubscribe = subscribe(tell)
    try:
        with unlogged("retrieval."):
            yield
    finally:
        unsubscribe()


def _text(event: Event, *, has_embedder: bool) -> str:
    why = f"{type(event.error).__name__}: {event.error}" if event.error else ""
    if event.name == "retrieval.rerank_failed":
        return f"not reranked: {why}"
    if event.name == "retrieval.degraded" and has_embedder:
        reasons = filter(None, [str(event.attributes.get("reason", "")), why])
        return f"{event.attributes.get('mode')} search only: {': '.join(reasons)}"
    return ""
