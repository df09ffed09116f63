"""The options of a memory manager, in one frozen value a subject, and the checks on them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypedDict

from locus_memory._internal.quoting import quote
from locus_memory.conversation.tokens import TokenCounter, as_token_counter
from locus_memory.errors import ConfigurationError
from locus_memory.memory.blend import Blend

__all__ = [
    "ExtractionKeywords",
    "ExtractionOptions",
    "MemoryKeywords",
    "RecallKeywords",
    "RecallOptions",
    "TendingOptions",
    "check_callable",
    "check_embedder",
    "check_one_of",
    "check_seconds",
    "check_whole",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallOptions:
    """The options of recall.

    Attributes:
        retrieve_limit: The most memories that a run recalls.
        token_budget: The most tokens of all that a run is shown; `None`: the
            `memory_budget_tokens` of `TendingOptions`.
        token_counter: Counts tokens; `None` estimates them.
        recall_timeout: The seconds the start of a run waits for the store; then the run goes on
            without memories, with an event.
        blend: The order of the memories that a query finds. `hybrid`: that of the search.
            `recency`: 0.7 relevance + 0.3 recency. `trust`: 0.5 relevance + 0.3 trust
            + 0.2 recency. Only with `hybrid` the newest memories fill the rest.
        blend_weights: Other weights of `recency` (two) or `trust` (three), in this order.
        half_life_days: The age at which a memory is half as recent, by its `valid_from`.
        min_relevance: With `recency` and `trust`: the lowest relevance of a recalled memory, from 0
            to 1, where there are vectors. Where there are none, a shared word is enough.

    Raises:
        ConfigurationError: An option that cannot work.
        InvalidArgumentError: `token_counter` counts no tokens.
    """

    retrieve_limit: int = 20
    token_budget: int | None = None
    token_counter: TokenCounter | None = None
    recall_timeout: float = 5.0
    blend: Literal["hybrid", "recency", "trust"] = "hybrid"
    blend_weights: tuple[float, ...] | None = None
    half_life_days: float = 30
    min_relevance: float = 0.5

    def __post_init__(self) -> None:
        check_whole(0, retrieve_limit=self.retrieve_limit)
        if self.token_budget is not None:
            check_whole(0, token_budget=self.token_budget)
        _check_at_least(0, recall_timeout=self.recall_timeout)
        as_token_counter(self.token_counter)
        self.blending()

    def blending(self) -> Blend | None:
        """Return the blend; `None`: the order of the search.

        Raises:
            ConfigurationError: An option that cannot work.
        """
        blend = Blend(
            name="recency" if self.blend == "hybrid" else self.blend,
            weights=self.blend_weights,
            half_life_days=self.half_life_days,
            min_relevance=self.min_relevance,
        )
        if self.blend != "hybrid":
            return blend
        if self.blend_weights is not None:
            raise ConfigurationError("blend_weights needs blend='recency' or blend='trust'")
        return None


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
        check_one_of(("inline", "background"), extract_mode=self.extract_mode)
        check_whole(0, batch_messages=self.batch_messages)
        check_whole(1, max_attempts=self.max_attempts)
        _check_at_least(0, batch_quiet=self.batch_quiet, extract_timeout=self.extract_timeout)
        _check_at_least(0, drain_timeout=self.drain_timeout)


@dataclass(frozen=True, slots=True, kw_only=True)
class TendingOptions:
    """The options of a memory that tends itself: its layers, its gate and its consolidation.

    Attributes:
        enabled: Whether turns are kept and become episodes, and whether a run is shown everything
            that is known, or what fits.
        passive: Whether turns are recorded and memories are shown to the model; the tools of
            `memory_tools` work in any case.
        extraction_mode: `"session_end"`: sessions are distilled when they end; `"manual"`: only
            `sync_now` distils.
        gate_mode: Whether the tail may be kept back, to save tokens. `"off"`: never;
            `"heuristic"`: where nothing that was found has two words of the message; `"llm"`:
            there, the model decides.
        memory_budget_tokens: The most tokens of all that a run is shown, 100 to 200,000.
        cache_idle_seconds: The seconds without a run after which the stable part of a thread is
            built again, up to 86,400: as long as the prompt cache of the model's provider holds.
        summary_debounce_seconds: The seconds without a new turn after which a session ends, 10 to
            3,600.
        pending_max_age: The seconds after which a session that is too short for a call of its own
            is extracted without waiting for the next one of its scope, 60 to 2,592,000 (30 days).
        consolidation_interval_hours: The hours between two consolidations, 1 to 168.
        salience_floor: The salience below which an important memory never falls, 0 to 1.
        episode_retention_days: The days that episodes and transcripts are kept, up to 3,650; 0:
            for ever.

    Raises:
        ConfigurationError: An option is out of its range.
    """

    enabled: bool = True
    passive: bool = True
    extraction_mode: Literal["session_end", "manual"] = "session_end"
    gate_mode: Literal["off", "heuristic", "llm"] = "off"
    memory_budget_tokens: int = 4_000
    cache_idle_seconds: float = 300.0
    summary_debounce_seconds: float = 60.0
    pending_max_age: float = 86_400.0
    consolidation_interval_hours: float = 24.0
    salience_floor: float = 0.2
    episode_retention_days: float = 365.0

    def __post_init__(self) -> None:
        check_one_of(("session_end", "manual"), extraction_mode=self.extraction_mode)
        check_one_of(("off", "heuristic", "llm"), gate_mode=self.gate_mode)
        for name in ("enabled", "passive"):
            check_one_of((True, False), **{name: getattr(self, name)})
        check_whole(100, memory_budget_tokens=self.memory_budget_tokens)
        for name, (least, most) in _RANGES.items():
            value = getattr(self, name)
            _check_at_least(least, **{name: value})
            if value > most:
                raise ConfigurationError(f"{name} is at most {most:,}, not {quote(value)}")


_RANGES: Final = {
    "memory_budget_tokens": (100, 200_000),
    "cache_idle_seconds": (0, 86_400),
    "summary_debounce_seconds": (10, 3_600),
    "pending_max_age": (60, 2_592_000),
    "consolidation_interval_hours": (1, 168),
    "salience_floor": (0, 1),
    "episode_retention_days": (0, 3_650),
}


class RecallKeywords(TypedDict, total=False):
    """The fields of `RecallOptions` by name."""

    retrieve_limit: int
    token_budget: int | None
    token_counter: TokenCounter | None
    recall_timeout: float
    blend: Literal["hybrid", "recency", "trust"]
    blend_weights: tuple[float, ...] | None
    half_life_days: float
    min_relevance: float


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


def check_one_of(known: tuple[object, ...], **options: object) -> None:
    """Check that each option is one of the known values.

    Raises:
        ConfigurationError: One is not; the message names it and the known values.
    """
    for name, value in options.items():
        if not any(value is each or (type(value) is str and value == each) for each in known):
            *first, last = map(repr, known)
            raise ConfigurationError(f"{name} is {', '.join(first)} or {last}, not {quote(value)}")
