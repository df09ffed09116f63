"""Documents put before the model: one fenced message with numbered sources, within a budget."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from locus_memory._internal.neutral import neutralise, neutralised_lines
from locus_memory._internal.offload import call
from locus_memory._internal.quoting import quote
from locus_memory.conversation.factory import new_message
from locus_memory.conversation.roles import (
    DOCUMENTS_CLOSE,
    DOCUMENTS_MARK,
    DOCUMENTS_OPENING,
    is_documents_block,
    role_of,
)
from locus_memory.conversation.tokens import TokenCounter, as_token_counter, message_tokens
from locus_memory.documents.fusion import Retriever
from locus_memory.documents.values import RetrievalResult
from locus_memory.errors import ConfigurationError
from locus_memory.messages import Message
from locus_memory.retrieval.ranking.absolute import check_min_score
from locus_memory.store.item import check_limit, need_text

__all__ = ["Context", "ContextConfig", "find_context", "inject_context", "with_context"]

_SENTENCE_END: Final = re.compile(
    "[.!?\u2026][\"'\u201d\u2019)\\]]*(?=\\s)|[\u3002\uff01\uff1f]|\n"
)
_WORD_END: Final = re.compile(r"(?<=\S)(?=\s)")
_BRACKETS: Final = str.maketrans("[]", "()")
_CUT: Final = "..."
_LINE: Final = "| "
"""Stands before each line of a document, so that no line of it looks like one of the block."""

_SHORTEST: Final = 20
"""A result is not cut to fewer characters."""

_TOGETHER: Final = 1.7
"""What the first score and the contrast have to reach, as a multiple of the lowest score;
`docs/documents.md` has the measurement."""

_CHARACTERS_A_TOKEN: Final = 8
"""No token of any language has more: a longer text never fits and is not counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextConfig:
    """What of an index is put before a model.

    Attributes:
        enabled: Whether anything is.
        top_k: At most this many chunks.
        min_score: Chunks with a lower score are left out; from 0 to 1. With vectors, the score of
            the first chunk and `RetrievalResult.contrast` must together reach 1.7 times as much, or
            nothing is shown: a question that an index does not answer finds many chunks of a
            middling score. Nor is anything if the first chunk is there `by_chance`, unless this
            is 0.
        max_context_tokens: The most tokens of the message, with its fence.
        filter: Only matching chunks are found, see `DocumentIndex.retrieve`.
        token_counter: Counts tokens, see `locus_memory.TokenCounter`; `None` estimates them, a
            little too high.

    Raises:
        ConfigurationError: `enabled` is not a truth value.
        InvalidArgumentError: A number that is negative or not whole, or an invalid `min_score`.
    """

    enabled: bool = True
    top_k: int = 5
    min_score: float = 0.5
    max_context_tokens: int = 2048
    filter: Mapping[str, Any] | None = None
    token_counter: Any = None

    def __post_init__(self) -> None:
        if not isinstance(self.enabled, bool):
            raise ConfigurationError(f"enabled is True or False, not {quote(self.enabled)}")
        check_limit(self.top_k, "top_k")
        check_limit(self.max_context_tokens, "max_context_tokens")
        check_min_score(self.min_score)
        as_token_counter(self.token_counter)


_DEFAULT: Final = ContextConfig()
_CLASSIC: Final = ContextConfig(min_score=0.1)


@dataclass(frozen=True, slots=True)
class Context:
    """What a query found, as a model sees it.

    Attributes:
        text: The fenced text.
        sources: What is shown: `[1]` in the text is the first of them.
    """

    text: str
    sources: tuple[RetrievalResult, ...]


async def inject_context(
    query: str,
    messages: Sequence[Any],
    index: Retriever,
    *,
    config: ContextConfig | Literal["openjarvis"] | None = None,
) -> list[Any]:
    """Return the messages with what the index has on a query, as one system message.

    It stands after the leading system messages, in place of an earlier one, and its metadata marks
    it: conversation managers keep it as it is, and no memory is extracted from it. Each text is
    data inside a fence: it can neither close the fence nor look like a line outside it. Without
    anything to show, only the earlier one is left out. The given messages are not changed.

    Args:
        query: The question, such as the user's message.
        messages: Messages of one class, of this library or another; oldest first.
        index: A `DocumentIndex`, or anything with its `retrieve`, blocking or not, whose hits have
            a `content`. The lowest score of `config` counts for the `score` of its hits.
        config: How much to show; `None` for the defaults, `"openjarvis"` for those of OpenJarvis.

    Raises:
        InvalidArgumentError: An invalid query.
        BackendError: The store failed.
    """
    return with_context(messages, await find_context(query, index, config=config))


async def find_context(
    query: str, index: Retriever, *, config: ContextConfig | Literal["openjarvis"] | None = None
) -> Context | None:
    """Return what the index has on a query; `None`: nothing that is relevant and fits.

    Raises:
        InvalidArgumentError: As for `inject_context`, as all other errors.
    """
    settings = _CLASSIC if config == "openjarvis" else config or _DEFAULT
    need_text(query, "a query")
    if not settings.enabled or not settings.top_k or not query.strip():
        return None
    # Without a lowest score: chunks further down are no better an answer than the first one.
    # An index of another system may know no filter.
    options = {} if settings.filter is None else {"filter": settings.filter}
    found = await call(index.retrieve, query, top_k=settings.top_k, **options)
    return _fitting(_relevant([*map(_result, found)], settings.min_score), settings)


def _result(hit: Any) -> RetrievalResult:
    """Return a hit of any index that has a content, and may have a score and a source."""
    if isinstance(hit, RetrievalResult):
        return hit
    return RetrievalResult(
        hit.content,
        float(getattr(hit, "score", 0.0)),
        getattr(hit, "source", "") or "",
        getattr(hit, "metadata", None) or {},
    )


def _relevant(found: Sequence[RetrievalResult], min_score: float) -> list[RetrievalResult]:
    if found and found[0].by_chance and min_score:
        return []
    contrast = next((each.contrast for each in found if each.contrast is not None), None)
    if contrast is not None and found[0].score < min(1.0, _TOGETHER * min_score - contrast):
        return []
    return [each for each in found if each.score >= min_score]


def with_context(messages: Sequence[Any], context: Context | None) -> list[Any]:
    """Return the messages with a context in place of an earlier one."""
    kept = [each for each in messages if role_of(each) == "tool" or not is_documents_block(each)]
    if context is None:
        return kept
    place = next((n for n, each in enumerate(kept) if role_of(each) != "system"), len(kept))
    sample: Any = messages[0] if messages else Message.system(context.text)
    mark = {"metadata": {DOCUMENTS_MARK: True}} if hasattr(sample, "metadata") else {}
    block = new_message(sample, role="system", content=context.text, **mark)
    return [*kept[:place], block, *kept[place:]]


def _fitting(found: Sequence[RetrievalResult], config: ContextConfig) -> Context | None:
    count = as_token_counter(config.token_counter)
    budget = config.max_context_tokens
    entries: list[str] = []
    shown: list[RetrievalResult] = []
    for result in found:
        content = _lines(result.content[: budget * _CHARACTERS_A_TOKEN])
        if not content:
            continue
        head = _head(len(shown) + 1, result)
        is_whole = len(result.content) <= budget * _CHARACTERS_A_TOKEN
        if is_whole and _fits([*entries, f"{head}\n{content}"], budget, count):
            entries.append(f"{head}\n{content}")
            shown.append(result)
        elif not entries and (cut := _cut(head, content, budget, count)):
            entries.append(cut)
            shown.append(result)
    return Context(_block(entries), tuple(shown)) if entries else None


def _head(number: int, result: RetrievalResult) -> str:
    """Return the line above a text: its number, its source, its headings and its lines."""
    source = _label(result.source) or "unnamed"
    heading = _label(result.heading)
    lines = "" if result.lines is None else "lines {}-{}".format(*result.lines)
    place = ", ".join(filter(None, (heading, lines)))
    return f"[{number}] [Source: {source}] {place}".rstrip()


def _label(text: str) -> str:
    return neutralise(text).translate(_BRACKETS)


def _lines(text: str) -> str:
    """Return a text with each of its lines neutralised, indented as before and marked."""
    return "\n".join(f"{_LINE}{line}" for line in neutralised_lines(text))


def _block(entries: Sequence[str]) -> str:
    return DOCUMENTS_OPENING + "".join(f"{each}\n" for each in entries) + DOCUMENTS_CLOSE


def _fits(entries: Sequence[str], budget: int, count: TokenCounter) -> bool:
    return message_tokens(Message.system(_block(entries)), count) <= budget


def _cut(head: str, content: str, budget: int, count: TokenCounter) -> str:
    """Return an entry with the longest beginning that fits; empty if hardly anything does.

    It ends with a sentence, else with a word.
    """
    for pattern in (_SENTENCE_END, _WORD_END):
        ends = [each.end() for each in pattern.finditer(content) if each.end() >= _SHORTEST]
        low = bisect_left(
            ends,
            True,
            key=lambda end: not _fits([_shortened(head, content, end)], budget, count),
        )
        if low:
            return _shortened(head, content, ends[low - 1])
    return ""


def _shortened(head: str, content: str, end: int) -> str:
    return f"{head}\n{content[:end].rstrip()} {_CUT}"
