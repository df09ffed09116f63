"""What the calls of models cost, and what may be spent on them."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import orjson
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from locus_memory._internal.quoting import quote
from locus_memory.errors import InvalidArgumentError
from locus_memory.evaluation.journal import Used

__all__ = ["Price", "Purse", "PurseEmptyError", "read_prices"]

_MILLION: Final = 1_000_000


class Price(BaseModel):
    """The price of a model, in dollars per million tokens.

    Attributes:
        prompt: Of prompts.
        completion: Of answers.
        cached: Of the part of prompts that the endpoint had in its cache; `None`: as `prompt`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, strict=True)

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
    except (ValueError, RecursionError) as error:
        raise InvalidArgumentError(f"{path}: no table of prices: {error}") from None


class PurseEmptyError(Exception):
    """The costs have reached their limit."""


@dataclass(slots=True)
class Purse:
    """The dollars that may be spent.

    Attributes:
        most: The limit; `None`: none.
        spent: What was spent.
        is_known: Whether the prices of all models are known, so that nothing else was spent.
    """

    most: float | None = None
    spent: float = 0.0
    is_known: bool = True

    def check(self) -> None:
        """Check that another call may begin.

        Raises:
            PurseEmptyError: What was spent has reached the limit.
        """
        if self.most is not None and self.spent >= self.most:
            raise PurseEmptyError(f"${self.spent:.4f} of ${self.most:g} are spent")
