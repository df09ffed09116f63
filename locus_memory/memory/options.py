"""The options of a memory manager, in one frozen value, and the checks on them."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import UnionType
from typing import Any, Final, Literal, TypedDict
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from locus_memory._internal.quoting import quote
from locus_memory.conversation.tokens import TokenCounter, as_token_counter
from locus_memory.errors import ConfigurationError
from locus_memory.memory.blend import Blend

__all__ = [
    "ExtractionOptions",
    "ManagerKeywords",
    "MemoryKeywords",
    "MemoryOptions",
    "RecallOptions",
    "TendingOptions",
    "check_callable",
    "check_embedder",
    "check_number",
    "check_one_of",
    "check_whole",
    "read_options",
]

ExtractMode = Literal["inline", "background", "session_end", "manual"]
"""When a model reads what was said; see `MemoryOptions`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryOptions:
    """The options of a memory.

    Attributes:
        memory_budget_tokens: The most tokens of all that a run is shown, 100 to 200,000; 0: it is
            shown nothing.
        token_counter: Counts tokens; `None` estimates them.
        recall_timeout: The seconds the start of a run waits for the store; then the run goes on
            without memories, with an event.
        blend: The order of the memories that a query of `retrieve` finds. `hybrid`: that of the
            search. `recency`: 0.7 relevance + 0.3 recency. `trust`: 0.5 relevance + 0.3 trust
            + 0.2 recency. A `Blend` has other weights. Only with `hybrid` the newest memories fill
            the rest.
        gate: Whether the tail may be kept back, to save tokens. `"off"`: never; `"rules"`: where
            nothing that was found has two words of the message; `"model"`: there, the model
            decides.
        cache_idle: The seconds without a run after which the stable part of a thread is built
            again, up to 86,400: as long as the prompt cache of the model's provider holds.
        transcript: Whether every turn is kept, word for word.
        retention: The days that turns and episodes are kept, up to 3,650; 0: for ever.
        timezone: The time zone of the user, such as `"Europe/Vienna"`: which day it is where a
            message has no offset of its own; `None`: that of the machine.
        extract_mode: When a model reads what was said. `"inline"`: before a run ends;
            `"background"`: right after it, in a task; `"session_end"`: once a session is over, with
            one call for all of it; `"manual"`: only by `sync_now`. Without a model, and not in the
            mode `"manual"`, phrases are read before a run ends.
        session_idle: The seconds without a new turn after which a session is over, up to 86,400; a
            failed extraction is retried then.
        pending_max_age: The seconds after which a session that is too short for a call of its own
            is extracted without waiting for the next one of its scope, 60 to 2,592,000 (30 days).
        extraction_budget: The most calls, and the most tokens as the model reports them, that
            extraction may take a day (UTC) where no run waits for it; what waits is read the next
            day, or by `sync_now`. `None`: any number.
        extract_timeout: The seconds an extractor may take, for each 20,000 characters.
        drain_timeout: The seconds that `close` waits for extractions in progress.
        allow_secrets: Whether to keep texts that look like a password, a key or a card number.

    Raises:
        ConfigurationError: An option is out of its range.
        InvalidArgumentError: `token_counter` counts no tokens.
    """

    memory_budget_tokens: int = 4_000
    token_counter: TokenCounter | None = None
    recall_timeout: float = 5.0
    blend: Literal["hybrid", "recency", "trust"] | Blend = "hybrid"
    gate: Literal["off", "rules", "model"] = "off"
    cache_idle: float = 300.0
    transcript: bool = True
    retention: float = 365.0
    timezone: str | None = None
    extract_mode: ExtractMode = "inline"
    session_idle: float = 60.0
    pending_max_age: float = 86_400.0
    extraction_budget: tuple[int, int] | None = None
    extract_timeout: float = 60.0
    drain_timeout: float = 30.0
    allow_secrets: bool = False

    def __post_init__(self) -> None:
        check_one_of(
            ("inline", "background", "session_end", "manual"), extract_mode=self.extract_mode
        )
        check_one_of(("off", "rules", "model"), gate=self.gate)
        check_one_of((True, False), transcript=self.transcript, allow_secrets=self.allow_secrets)
        if self.memory_budget_tokens != 0:
            check_whole(100, memory_budget_tokens=self.memory_budget_tokens)
        for name, (least, most) in _RANGES.items():
            check_number(least, most, **{name: getattr(self, name)})
        budget: object = self.extraction_budget
        if budget is not None and not (isinstance(budget, tuple) and len(budget) == _PAIR):
            raise ConfigurationError(
                f"extraction_budget is a tuple of calls and tokens, not {quote(budget)}"
            )
        for each in self.extraction_budget or ():
            check_whole(1, extraction_budget=each)
        as_token_counter(self.token_counter)
        self.blending()
        self.zone()

    def blending(self) -> Blend | None:
        """Return the blend; `None`: the order of the search.

        Raises:
            ConfigurationError: There is no such blend.
        """
        if isinstance(self.blend, Blend):
            return self.blend
        return None if self.blend == "hybrid" else Blend(name=self.blend)

    def zone(self) -> ZoneInfo | None:
        """Return the time zone of the user; `None`: that of the machine.

        Raises:
            ConfigurationError: It is unknown.
        """
        try:
            return None if self.timezone is None else ZoneInfo(self.timezone)
        except (ZoneInfoNotFoundError, TypeError, ValueError, OSError) as error:
            raise ConfigurationError(
                f"timezone is the name of a time zone, not {quote(self.timezone)}"
            ) from error


_PAIR: Final = 2
_RANGES: Final = {
    "memory_budget_tokens": (0, 200_000),
    "recall_timeout": (0, math.inf),
    "cache_idle": (0, 86_400),
    "retention": (0, 3_650),
    "session_idle": (0, 86_400),
    "pending_max_age": (60, 2_592_000),
    "extract_timeout": (0, math.inf),
    "drain_timeout": (0, math.inf),
}


class MemoryKeywords(TypedDict, total=False):
    """The fields of `MemoryOptions` by name."""

    memory_budget_tokens: int
    token_counter: TokenCounter | None
    recall_timeout: float
    blend: Literal["hybrid", "recency", "trust"] | Blend
    gate: Literal["off", "rules", "model"]
    cache_idle: float
    transcript: bool
    retention: float
    timezone: str | None
    extract_mode: ExtractMode
    session_idle: float
    pending_max_age: float
    extraction_budget: tuple[int, int] | None
    extract_timeout: float
    drain_timeout: float
    allow_secrets: bool


class ManagerKeywords(MemoryKeywords, total=False):
    """What a manager takes by name alone: its options, and the most past versions of a memory."""

    history_limit: int


class RecallOptions(dict[str, Any]):
    """The options of recall of earlier versions, which are read with a warning."""


class ExtractionOptions(RecallOptions):
    """The options of extraction of earlier versions, as `RecallOptions`."""


class TendingOptions(RecallOptions):
    """The options of a memory that tends itself of earlier versions, as `RecallOptions`."""

    def __init__(self, **options: Any) -> None:
        super().__init__({"enabled": True, **options})


def read_options(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return options by the names that they have now; each older name is a `DeprecationWarning`.

    Args:
        given: Options by name; those of earlier versions also in the values `recall`,
            `extraction` and `tending`.

    Raises:
        ConfigurationError: One of these values is something else.
    """
    told = dict(given)
    for name in ("recall", "extraction", "tending"):
        value = told.pop(name, None) or {}
        if not isinstance(value, Mapping):
            raise ConfigurationError(f"{name} is a part of MemoryOptions(...), not {quote(value)}")
        if value:
            warnings.warn(f"{name} is now options", DeprecationWarning, stacklevel=3)
        told |= value
    for name, (now, read) in _OLD.items():
        if name in told:
            warnings.warn(f"the option {name} is now {now}", DeprecationWarning, stacklevel=3)
            told |= read(told.pop(name))
    weighed = {_BLENDED[name]: told.pop(name) for name in _BLENDED if name in told}
    if weighed:
        warnings.warn("blend is now a Blend(...)", DeprecationWarning, stacklevel=3)
        told["blend"] = Blend(name=told.get("blend", "recency"), **weighed)
    return told


_Read = tuple[str, Callable[[Any], dict[str, Any]]]
"""How an option is called now, and a function that returns what its value means now."""


def _renamed(name: str) -> _Read:
    return name, lambda value: {name: value}


_GATES: Final = {"heuristic": "rules", "llm": "model"}
_SESSIONS: Final[_Read] = (
    "extract_mode='session_end'",
    lambda on: {"extract_mode": "session_end"} if on else {},
)
_WITHOUT: Final[_Read] = ("without effect", lambda _: {})
_OLD: Final[Mapping[str, _Read]] = {
    "batch_messages": _SESSIONS,
    "enabled": _SESSIONS,
    "extraction_mode": _renamed("extract_mode"),
    "token_budget": _renamed("memory_budget_tokens"),
    "passive": (
        "transcript=False with memory_budget_tokens=0",
        lambda on: {} if on else {"transcript": False, "memory_budget_tokens": 0},
    ),
    "gate_mode": ("gate", lambda mode: {"gate": _GATES.get(str(mode), mode)}),
    "cache_idle_seconds": _renamed("cache_idle"),
    "episode_retention_days": _renamed("retention"),
    "batch_quiet": _renamed("session_idle"),
    "summary_debounce_seconds": _renamed("session_idle"),
    "namespace_resolver": _renamed("namespace_prefix"),
    "max_attempts": _WITHOUT,
    "consolidation_interval_hours": _WITHOUT,
    "salience_floor": _WITHOUT,
}
"""The options of earlier versions."""

_BLENDED: Final = {
    "blend_weights": "weights",
    "half_life_days": "half_life_days",
    "min_relevance": "min_relevance",
}


def check_whole(least: int, **options: object) -> None:
    """Check that each option is an integer of at least `least`.

    Raises:
        ConfigurationError: One is not; the message names it.
    """
    told = f"an integer of at least {least}"
    _check(options, told, lambda value: _is_number(value, int, least))


def check_callable(**options: object) -> None:
    """Check that each option can be called.

    Raises:
        ConfigurationError: One cannot; the message names it.
    """
    _check(options, "a function", callable)


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


def check_number(least: float = 0, most: float = math.inf, /, **options: object) -> None:
    """Check that each option is a number of at least `least` and at most `most`.

    Raises:
        ConfigurationError: One is not; the message names it.
    """
    told = f"a number of at least {least}"
    _check(options, told, lambda value: _is_number(value, int | float, least))
    _check(options, f"at most {most:,}", lambda value: value <= most)


def check_one_of(known: tuple[object, ...], **options: object) -> None:
    """Check that each option is one of the known values.

    Raises:
        ConfigurationError: One is not; the message names it and the known values.
    """
    *first, last = map(repr, known)
    _check(
        options,
        f"{', '.join(first)} or {last}",
        lambda value: any(
            value is each or (type(value) is str and value == each) for each in known
        ),
    )


def _check(options: Mapping[str, object], wanted: str, takes: Callable[[Any], bool]) -> None:
    for name, value in options.items():
        if not takes(value):
            raise ConfigurationError(f"{name} is {wanted}, not {quote(value)}")


def _is_number(value: Any, kind: type[int] | UnionType, least: float) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool) and value >= least
