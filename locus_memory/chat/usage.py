"""The token usage that a model reports."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple

from locus_memory.events import Event, emit

__all__ = ["Counts", "Usage", "counts_in", "report_usage", "usage_in"]

_EVENT: Final = "model.answered"


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Counts of tokens as the model reports them; a model that reports none counts as 0.

    Attributes:
        prompt_tokens: Tokens of all prompts.
        completion_tokens: Tokens of all answers.
        total_tokens: The sum of both.
        extraction_tokens: The part of the total for the extraction of memories.
    """

    prompt_tokens: int = 0
    completion_tokens: int = 0
    total_tokens: int = 0
    extraction_tokens: int = 0


class Counts(NamedTuple):
    """The tokens of one answer; `cached_tokens` is the part of the prompt that was cached."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    cached_tokens: int


def report_usage(
    answer: Any,
    purpose: Literal["answer", "extraction", "gate", "levels", "reflection", "summary", "tending"],
) -> None:
    """Emit the event `model.answered` with the `usage` of an answer's metadata."""
    told = counts_in(answer)
    if told.total_tokens:
        emit(
            "model.answered",
            purpose=purpose,
            prompt_tokens=told.prompt_tokens,
            completion_tokens=told.completion_tokens,
            total_tokens=told.total_tokens,
        )


def counts_in(answer: Any) -> Counts:
    """Return the counts of tokens in the `usage` of an answer's metadata; 0: it tells none."""
    metadata = getattr(answer, "metadata", None)
    usage = metadata.get("usage") if isinstance(metadata, Mapping) else None
    told: Mapping[str, Any] = usage if isinstance(usage, Mapping) else {}
    # The names of both OpenAI and Anthropic.
    prompt = _count(told, "prompt_tokens", "input_tokens")
    completion = _count(told, "completion_tokens", "output_tokens")
    total = _count(told, "total_tokens") or prompt + completion
    return Counts(prompt, completion, total, _count(told, "cached_tokens"))


def usage_in(events: Iterable[Event]) -> Usage:
    """Return the sum of the usage that `report_usage` emitted."""
    told = [event.attributes for event in events if event.name == _EVENT]
    return Usage(
        prompt_tokens=sum(each["prompt_tokens"] for each in told),
        completion_tokens=sum(each["completion_tokens"] for each in told),
        total_tokens=sum(each["total_tokens"] for each in told),
        extraction_tokens=sum(
            each["total_tokens"] for each in told if each["purpose"] == "extraction"
        ),
    )


def _count(told: Mapping[str, Any], *names: str) -> int:
    counts = (told.get(name) for name in names)
    return next((each for each in counts if type(each) is int and each > 0), 0)
