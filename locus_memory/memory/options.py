"""The options of a memory manager, in one frozen value a subject, and the checks on them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypedDict

from locus_memory._internal.quoting import quote
from locus_memory.conversation.tokens import TokenCounter, as_token_counter
from locus_memory.errors import ConfigurationError

__all__ = [
    "ExtractionKeywords",
    "ExtractionOptions",
    "MemoryKeywords",
    "RecallKeywords",
    "RecallOptions",
    "check_callable",
    "check_embedder",
    "check_seconds",
    "check_whole",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallOptions:
    """The options of recall.

    Attributes:
        retrieve_limit: The most memories that a run recalls.
        token_budget: The most tokens the block of memories may take.
        token_counter: Counts tokens; `None` estimates them.
        recall_timeout: The seconds the start of a run waits for the store; then the run goes on
            without memories, with an event.

    Raises:
        ConfigurationError: An option that cannot work.
        InvalidArgumentError: `token_counter` counts no tokens.
    """

    retrieve_limit: int = 20
    token_budget: int = 1000
    token_counter: TokenCounter | None = None
    recall_timeout: float = 5.0

    def __post_init__(self) -> None:
        check_whole(0, retrieve_limit=self.retrieve_limit, token_budget=self.token_budget)
        _check_at_least(0, recall_timeout=self.recall_timeout)
        as_token_counter(self.token_counter)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractionOptions:
    """The options of extraction.

    Attributes:
        extract_mode: `"inline"`: before a run ends; `"background"`: later, in a task.
        batch_messages: Extract from a thread once this many of its messages wait; `drain` and
            `close` do not wait for more, nor does the next process.
        batch_quiet: Extract from a thread after this many seconds without a new message, however
            few of its messages wait; a failed extraction is retried then.
        extract_timeout: The seconds an extractor may take.
        max_attempts: How often to try an extraction that fails.
        drain_timeout: The seconds that `close` waits for extractions in progress.
        allow_secrets: Whether to keep texts that look like a password, a key or a card
            number.

    Raises:
        ConfigurationError: An option that cannot work.
    """

    extract_mode: Literal["inline", "background"] = "inline"
    batch_messages: int = 0
    batch_quiet: float = 60.0
    extract_timeout: float = 60.0
    max_attempts: int = 5
    drain_timeout: float = 30.0
    allow_secrets: bool = False

    def __post_init__(self) -> None:
        if self.extract_mode not in ("inline", "background"):
            raise ConfigurationError(
                f"extract_mode is 'inline' or 'background', not {quote(self.extract_mode)}"
            )
        check_whole(0, batch_messages=self.batch_messages)
        check_whole(1, max_attempts=self.max_attempts)
        _check_at_least(0, batch_quiet=self.batch_quiet, extract_timeout=self.extract_timeout)
        _check_at_least(0, drain_timeout=self.drain_timeout)


class RecallKeywords(TypedDict, total=False):
    """The fields of `RecallOptions` by name."""

    retrieve_limit: int
    token_budget: int
    token_counter: TokenCounter | None
    recall_timeout: float


class ExtractionKeywords(TypedDict, total=False):
    """The fields of `ExtractionOptions` by name."""

    extract_mode: Literal["inline", "background"]
    batch_messages: int
    batch_quiet: float
    extract_timeout: float
    max_attempts: int
    drain_timeout: float
    allow_secrets: bool


class MemoryKeywords(RecallKeywords, ExtractionKeywords, total=False):
    """The options of `LLMMemoryManager` by name, besides its own parameters."""


def check_whole(least: int, **options: object) -> None:
    """Check that each option is an integer of at least `least`.

    Raises:
        ConfigurationError: One is not; the message names it.
    """
    for name, value in options.items():
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise ConfigurationError(
                f"{name} is an integer of at least {least}, not {quote(value)}"
            )


def check_callable(**options: object) -> None:
    """Check that each option can be called.

    Raises:
        ConfigurationError: One cannot; the message names it.
    """
    for name, value in options.items():
        if not callable(value):
            raise ConfigurationError(f"{name} is a function, not {quote(value)}")


def check_embedder(embedder: object) -> None:
    """Check that an embedder can embed; `None` is none.

    Raises:
        ConfigurationError: It cannot.
    """
    embeds = callable(getattr(embedder, "embed", None)) and not isinstance(embedder, type)
    # What it is called is written beside each vector.
    named = isinstance(getattr(embedder, "name", None), str)
    if embedder is not None and not (embeds and named):
        raise ConfigurationError(
            f"embedder is an object with a name and embed(texts, kind=...), not {quote(embedder)}"
        )


def check_seconds(**options: object) -> None:
    """Check that each option is a number of seconds of at least 0.

    Raises:
        ConfigurationError: One is not; the message names it.
    """
    _check_at_least(0, **options)


def _check_at_least(least: int, **options: object) -> None:
    """Check that each option is a number of at least `least`.

    Raises:
        ConfigurationError: One is not; the message names it.
    """
    for name, value in options.items():
        if isinstance(value, bool) or not isinstance(value, int | float) or not value >= least:
            raise ConfigurationError(f"{name} is a number of at least {least}, not {quote(value)}")
