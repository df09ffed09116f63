"""Chunks that are found: their order, their scores and their filters."""

from __future__ import annotations

import pytest

from locus_memory.documents.index import DocumentIndex
from locus_memory.errors import InvalidArgumentError
from locus_memory.testing.document_suite.base import DocumentSuite
from locus_memory.testing.store_suite.base import refused

__all__ = ["FindingTests"]

_FACTS = (
    "The kettle in the office boils at ninety degrees.",
    "Invoices are paid on the fifteenth of each month.",
    "The server room is locked after eight in the evening.",
    "Holidays are requested from the lead of the team.",
)


class FindingTests(DocumentSuite):
    """What a query finds."""

    async def test_the_best_comes_first(self, index: DocumentIndex) -> None:
        for number, fact in enumerate(_FACTS):
            await index.store(fact, source=f"fact {number}")
        for fact in _FACTS:
            found = await index.retrieve(fact, top_k=2)
            assert found[0].content == fact
            assert found[0].score > 0.8
            assert [each.score for each in found] == sorted(
                (each.score for each in found), reverse=True
            )

    @pytest.mark.parametrize("size", [1, 3, 60])
    async def test_scores_mean_the_same_in_any_size(self, index: DocumentIndex, size: int) -> None:
        await index.store(_FACTS[0])
        for number in range(size - 1):
            await index.store(f"Entry {number} of a log of nothing in particular.")
        [hit] = await index.retrieve("at what degrees does the kettle boil", top_k=1)
        assert hit.content == _FACTS[0]
        assert hit.score > 0.5
        assert await index.retrieve("quantum chromodynamics lattice", min_score=0.5) == []

    async def test_a_heading_is_searched(self, index: DocumentIndex) -> None:
        text = "# Heron\n\n## Nesting\n\nIt builds in tall trees near water.\n"
        await index.add(text, source="birds.md", kind="markdown")
        [found] = await index.retrieve("heron nesting")
        assert found.heading == "Heron > Nesting"
        assert found.lines == (1, 5)

    async def test_filters_are_exact(self, index: DocumentIndex) -> None:
        for team in ("red", "blue", "green"):
            await index.store("The kettle boils.", source=team, metadata={"team": team})
        found = await index.retrieve("kettle", filter={"team": {"$in": ["red", "blue"]}})
        assert sorted(each.source for each in found) == ["blue", "red"]
        [one] = await index.retrieve("kettle", filter={"source": "green"})
        assert one.metadata["team"] == "green"

    async def test_no_more_than_asked_for(self, index: DocumentIndex) -> None:
        for number in range(8):
            await index.store(f"The kettle number {number} boils.")
        assert len(await index.retrieve("kettle", top_k=3)) == 3
        assert await index.retrieve("kettle", top_k=0) == []
        assert await index.retrieve("") == []
        assert await index.retrieve("  \n") == []
        await refused(
            InvalidArgumentError,
            index.retrieve("kettle", top_k=-1),
            index.retrieve("kettle", min_score=2),
        )

    async def test_an_explanation_on_request(self, index: DocumentIndex) -> None:
        await index.store(_FACTS[0])
        [plain] = await index.retrieve("kettle")
        [told] = await index.retrieve("kettle", explain=True)
        assert plain.explanation is None
        assert told.explanation is not None
        assert told.explanation.score > 0
