"""The token usage that a model reports."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from locus_memory.events import Event, emit

__all__ = ["Usage", "report_usage", "usage_in"]

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


def report_usage(
    answer: Any,
    purpose: Literal["answer", "extraction", "gate", "levels", "reflection", "summary", "tending"],
) -> None:
    """Emit the event `model.answered` with the `usage` of an answer's metadata."""
    metadata = getattr(answer, "metadata", None)
    told = metadata.get("usage") if isinstance(metadata, Mapping) else None
    if not isinstance(told, Mapping):
        return
    # The names of both OpenAI and Anthropic.
    prompt = _count(told, "prompt_tokens", "input_tokens")
    completion = _count(told, "completion_tokens", "output_tokens")
    total = _count(told, "total_tokens") or prompt + completion
    if total:
        emit(
            "model.answered",
            purpose=purpose,
            prompt_tokens=prompt,
            completion_tokens=completion,
            total_tokens=total,
        )


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
