"""How many tokens a model says that it used."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from locus_memory.events import Event, emit

__all__ = ["Usage", "report_usage", "usage_in"]

_EVENT: Final = "model.answered"


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens, as far as the model tells; one that tells nothing counts as 0.

    Attributes:
        prompt_tokens: What the model was given, in all.
        completion_tokens: What it wrote, in all.
        total_tokens: Both.
        extraction_tokens: How many of the total were for the extraction of memories.
    """

    prompt_tokens: int = 0
    completion_tokens: int = 0
    total_tokens: int = 0
    extraction_tokens: int = 0


def report_usage(answer: Any, purpose: Literal["answer", "extraction"]) -> None:
    """Tell, as the event `model.answered`, what an answer's metadata says of its `usage`."""
    metadata = getattr(answer, "metadata", None)
    told = metadata.get("usage") if isinstance(metadata, Mapping) else None
    if not isinstance(told, Mapping):
        return
    # Anthropic's names as well as OpenAI's.
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
    """Return the sum of what `report_usage` told."""
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
