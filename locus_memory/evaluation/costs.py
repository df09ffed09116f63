"""What the calls of models take: their tokens, their time and their price."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Self

import orjson
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from locus_memory._internal.quoting import quote
from locus_memory.errors import InvalidArgumentError

__all__ = ["Price", "Purse", "PurseEmptyError", "Used", "read_prices"]

_MILLION: Final = 1_000_000


class Price(BaseModel):
    """The price of a model, in dollars per million tokens.

    Attributes:
        prompt: Of prompts.
        completion: Of answers.
        cached: Of the part of prompts that the endpoint had in its cache; `None`: as `prompt`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    prompt: float = Field(ge=0)
    completion: float = Field(ge=0)
    cached: float | None = Field(default=None, ge=0)

    def cost(self, used: Used) -> float:
        """Return the dollars that calls cost."""
        cached = self.prompt if self.cached is None else self.cached
        whole = used.prompt_tokens - used.cached_tokens
        dear = whole * self.prompt + used.completion_tokens * self.completion
        return (dear + used.cached_tokens * cached) / _MILLION


_PRICES: Final = TypeAdapter(dict[str, Price])


def read_prices(path: str | Path) -> dict[str, Price]:
    """Return the prices of a file by the strings of their models: TOML, or JSON by its name.

    Raises:
        OSError: The file cannot be read.
        InvalidArgumentError: It is no table of prices.
    """
    content = Path(path).read_bytes()
    try:
        is_json = str(path).endswith(".json")
        document: Any = orjson.loads(content) if is_json else tomllib.loads(content.decode())
        return _PRICES.validate_python(document)
    except ValidationError as error:
        problem = error.errors(include_url=False, include_input=False)[0]
        where = quote(".".join(map(str, problem["loc"])))
        raise InvalidArgumentError(f"{path}: {where}: {problem['msg']}") from None
    except ValueError as error:
        raise InvalidArgumentError(f"{path}: no table of prices: {error}") from None


@dataclass(frozen=True, slots=True, kw_only=True)
class Used:
    """What calls took; the fields are those of a line of the journal.

    Attributes:
        prompt_tokens: The tokens of all prompts.
        completion_tokens: The tokens of all answers.
        cached_tokens: The part of the prompts that the endpoint had in its cache.
        counted: Whether a count is an estimate.
        calls: The number of answers.
        seconds: The time that they took.
        cost: Dollars; `None`: a price is not known.
    """

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    counted: bool = False
    calls: int = 0
    seconds: float = 0.0
    cost: float | None = 0.0

    def priced(self, cost: float) -> Used:
        """Return the same for these dollars."""
        return replace(self, cost=cost)

    def __add__(self, other: Self) -> Used:
        known = self.cost is not None and other.cost is not None
        return Used(
            prompt_tokens=self.prompt_tokens + other.prompt_tokens,
            completion_tokens=self.completion_tokens + other.completion_tokens,
            cached_tokens=self.cached_tokens + other.cached_tokens,
            counted=self.counted or other.counted,
            calls=self.calls + other.calls,
            seconds=self.seconds + other.seconds,
            cost=(self.cost or 0) + (other.cost or 0) if known else None,
        )


class PurseEmptyError(Exception):
    """The costs have reached their limit."""


@dataclass(slots=True)
class Purse:
    """The dollars that may be spent.

    Attributes:
        most: The limit; `None`: none.
        spent: What was spent.
    """

    most: float | None = None
    spent: float = 0.0

    def check(self) -> None:
        """Check that another call may begin.

        Raises:
            PurseEmptyError: What was spent has reached the limit.
        """
        if self.most is not None and self.spent >= self.most:
            raise PurseEmptyError(f"${self.spent:.4f} of ${self.most:g} are spent")
