"""The run of an evaluation: it indexes conversations and searches for their questions."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from operator import attrgetter, itemgetter
from statistics import mean, median
from typing import TYPE_CHECKING, Final

from locus_memory.errors import InvalidArgumentError
from locus_memory.evaluation.block import Shown, shown
from locus_memory.evaluation.dataset import Conversation, Question
from locus_memory.evaluation.report import BUDGETS, SIDES, Answer, Margin, Report, Scores
from locus_memory.retrieval.embedders.base import Embedder
from locus_memory.retrieval.embedders.wrappers.caching import CachingEmbedder
from locus_memory.retrieval.embedding import embed
from locus_memory.retrieval.hybrid import HybridSearch, Mode, SearchResult
from locus_memory.retrieval.options import SearchOptions
from locus_memory.retrieval.pack import pack
from locus_memory.retrieval.ranking.fields import Words
from locus_memory.retrieval.ranking.fusion import reciprocal_rank_fusion
from locus_memory.retrieval.ranking.query import read_query
from locus_memory.retrieval.ranking.score import word_scores
from locus_memory.retrieval.turns import Turn, index_turns
from locus_memory.store.base import BaseStore, has_semantic_search
from locus_memory.store.item import Namespace
from locus_memory.store.opening import borrowed
from locus_memory.store.text import tokens

if TYPE_CHECKING:
    from locus_memory.backends.base import Backend
    from locus_memory.retrieval.rerankers.base import Reranker

__all__ = ["NAMESPACE", "Plain", "evaluate"]

NAMESPACE: Final = ("locus-memory-evaluation",)
"""The namespace of the indexed conversations; it is cleared before and after."""

_HITS: Final = 200
"""How many turns are requested: enough to fill the largest budget."""

_RRF: Final = 60
"""The k of the paper on reciprocal rank fusion."""

_OPTIONS: Final = SearchOptions()

Progress = Callable[[int, int], None]
"""Called with the number of steps done, and of all steps."""


async def evaluate(
    conversations: Sequence[Conversation],
    store: str | BaseStore | Backend,
    embedder: Embedder | None = None,
    *,
    reranker: Reranker | None = None,
    options: SearchOptions = _OPTIONS,
    namespace: Namespace = NAMESPACE,
    on_progress: Progress | None = None,
) -> Report:
    """Return how well hybrid search finds the evidence of the questions.

    Each conversation is indexed in its own namespace, one item per turn, and each of its questions
    is searched there. Except for the time, the result depends on the arguments only.

    Args:
        conversations: The conversations to index, with their questions.
        store: Any store that can search, a backend that has one, or a provider string, whose store
            is closed afterwards.
        embedder: Adds vector search, if the store supports it.
        reranker: Reorders the best hits.
        options: The weights of the ranking.
        namespace: The namespace of the index. **Everything in it and below it is deleted**, before
            and after.
        on_progress: Called after each step, in the running event loop.

    Raises:
        InvalidArgumentError: There is no question.
        StoreCapabilityError: The store cannot search.
        BackendError: The store failed.
    """
    if not any(each.questions for each in conversations):
        raise InvalidArgumentError("none of the conversations has a question with evidence")
    async with borrowed(store) as found:
        prepared = None
        if embedder is not None and await has_semantic_search(found):
            prepared = CachingEmbedder(embedder)
        total = sum(len(each.sessions) + len(each.questions) for each in conversations)
        run = _Run(found, prepared, reranker, options, namespace, on_progress, total)
        await found.clear_namespace(namespace, recursive=True)
        try:
            for conversation in conversations:
                await run.take(conversation)
        finally:
            await found.clear_namespace(namespace, recursive=True)
        return run.report(conversations)


@dataclass(slots=True)
class _Run:
    """One run of an evaluation."""

    store: BaseStore
    embedder: Embedder | None
    reranker: Reranker | None
    options: SearchOptions
    namespace: Namespace
    told: Progress | None
    total: int
    done: int = 0
    answers: list[Answer] = field(default_factory=list[Answer])
    sides: dict[str, list[Answer]] = field(default_factory=dict[str, list[Answer]])
    times: list[float] = field(default_factory=list[float])
    blocks: list[Shown] = field(default_factory=list[Shown])
    mode: Mode = "text"

    async def take(self, conversation: Conversation) -> None:
        """Index a conversation and search for its questions."""
        place = (*self.namespace, conversation.id)
        for session in conversation.sessions:
            await self.store.put_batch(
                await index_turns(place, session.turns, self.embedder, session=session.name)
            )
            self._step()
        if self.embedder is not None:
            # So the time of a query's embedding is not measured.
            asked = [read_query(each.text).text for each in conversation.questions]
            await embed(self.embedder, asked, "query")
        search = HybridSearch(
            self.store, self.embedder, reranker=self.reranker, options=self.options
        )
        # A search of an agent's size is timed, one question after the other; the figures need more
        # hits.
        for question in conversation.questions:
            start = time.perf_counter()
            await search.search(place, question.text)
            self.times.append(time.perf_counter() - start)
        plain = Plain([turn for each in conversation.sessions for turn in each.turns])
        for question in conversation.questions:
            result = await search.search(place, question.text, _HITS)
            self.mode = result.mode
            self.answers.append(plain.answer(question, _names(result)))
            await self._take_sides(plain, place, question)
            self._step()
        async for block in shown(conversation, self.store, (*place, "memory")):
            self.blocks.append(block)

    def _step(self) -> None:
        self.done += 1
        if self.told is not None:
            self.told(self.done, self.total)

    async def _take_sides(self, plain: Plain, place: Namespace, question: Question) -> None:
        """Search in the other ways, for comparison."""
        found = {"bm25": plain.by_words(question.text)}
        if self.embedder is not None:
            (vector,) = await embed(self.embedder, [read_query(question.text).text], "query")
            hits = await self.store.search_by_embedding(place, vector, _HITS)
            found["cosine"] = [str(hit.item.metadata["turn"]) for hit in hits]
            fused = reciprocal_rank_fusion(found.values(), k=_RRF)
            found["rrf"] = [name for name, _ in fused[:_HITS]]
        search = HybridSearch(self.store, self.embedder, options=self.options)
        for mode in SIDES if self.mode == "hybrid" else ():
            result = await search.search(place, question.text, _HITS, mode=mode)
            found[mode] = _names(result)
        if self.reranker is not None:
            found["first"] = _names(await search.search(place, question.text, _HITS))
        for name, names in found.items():
            self.sides.setdefault(name, []).append(plain.answer(question, names))

    def report(self, conversations: Sequence[Conversation]) -> Report:
        categories = sorted({each.category for each in self.answers})
        return Report(
            overall=Scores.of(self.answers),
            categories={
                name: Scores.of([each for each in self.answers if each.category == name])
                for name in categories
            },
            sides={name: Scores.of(answers) for name, answers in self.sides.items()},
            margin=Margin.of(self.answers, self.sides),
            conversations=len(conversations),
            turns=sum(len(each.turns) for entry in conversations for each in entry.sessions),
            mode=self.mode,
            embedder=None if self.embedder is None else self.embedder.name,
            reranker=None if self.reranker is None else self.reranker.name,
            median_ms=median(self.times) * 1000,
            block_recall=mean(each.recall for each in self.blocks),
            block_tokens=mean(each.tokens for each in self.blocks),
        )


class Plain:
    """The turns of a conversation, for searches without rules."""

    def __init__(self, turns: Sequence[Turn]) -> None:
        self._turns = {str(turn.id): turn for turn in turns}
        self._words = [Words.of(tokens(turn.spoken)) for turn in self._turns.values()]

    def by_words(self, query: str) -> list[str]:
        """Return the ids of the turns with any word of a query, by BM25."""
        scores = word_scores(read_query(query).words, self._words)
        found = [(-score, name) for name, score in zip(self._turns, scores, strict=True) if score]
        return [name for _, name in sorted(found, key=itemgetter(0))[:_HITS]]

    def answer(self, question: Question, names: Sequence[str]) -> Answer:
        """Return the answer of a search that found these turns."""
        found = [self._turns[name] for name in names]
        packed = {
            budget: tuple(
                str(turn.id) for turn in pack(found, budget, text_of=attrgetter("spoken")).items
            )
            for budget in BUDGETS
        }
        return Answer(question.category, question.evidence, tuple(names), packed)


def _names(result: SearchResult) -> list[str]:
    return [str(hit.item.metadata["turn"]) for hit in result]
