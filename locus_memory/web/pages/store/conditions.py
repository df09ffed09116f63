"""Filters out of the fields of a form; pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

import orjson

from locus_memory.transfer.chats.exact_json import InexactNumberError, parse_json
from locus_memory.web.errors import RefusalError

__all__ = ["OPERATORS", "Condition", "make_filter", "read_json"]

OPERATORS: Final = {
    "$eq": "is",
    "$ne": "is not",
    "$gt": "is greater than",
    "$gte": "is at least",
    "$lt": "is less than",
    "$lte": "is at most",
    "$in": "is one of",
    "$nin": "is none of",
    "$contains": "contains",
    "$exists": "exists",
}
"""The operators of the form, with their words."""

_LISTED: Final = frozenset(("$in", "$nin"))


@dataclass(frozen=True, slots=True)
class Condition:
    """A line of the form: a field, an operator, and what was written beside it."""

    field: str
    operator: str
    written: str

    def to_filter(self) -> dict[str, Any]:
        """Return the filter of this condition alone."""
        operand = self._operand()
        return {self.field: operand if self.operator == "$eq" else {self.operator: operand}}

    def _operand(self) -> Any:
        """Return the operand: JSON where it is JSON, else the text itself."""
        text = self.written.strip()
        if self.operator == "$exists":
            return text.lower() not in ("false", "no")
        if self.operator in _LISTED and not text.startswith("["):
            return [_value(each.strip()) for each in text.split(",")]
        return _value(text)


def make_filter(conditions: Iterable[Condition], *, is_any: bool) -> dict[str, Any] | None:
    """Return the filter of conditions that must all hold, or any of them; `None`: there is none."""
    parts = [each.to_filter() for each in conditions]
    if not parts:
        return None
    return parts[0] if len(parts) == 1 else {"$or" if is_any else "$and": parts}


def read_json(text: str, name: str) -> Any:
    """Return the value of a JSON text that somebody wrote.

    Raises:
        RefusalError: It is not JSON, or a number in it cannot be kept.
    """
    try:
        return parse_json(text)
    except InexactNumberError as error:
        raise RefusalError(400, f"{name}: {error.msg}") from None
    except orjson.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise RefusalError(
            400, f"{name} is not JSON ({place}); a text stands in double quotes"
        ) from None


def _value(text: str) -> Any:
    try:
        return parse_json(text)
    except orjson.JSONDecodeError:
        return text
