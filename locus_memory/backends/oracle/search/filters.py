"""Filters as conditions on the tokens of items, which every matching item satisfies.

A condition may hold for other items as well, since a token is a digest and not all operators have
tokens. So each item that is found is compared with the filter itself.
"""

from __future__ import annotations

import re
from typing import Final

from locus_memory.backends.oracle.items.queries import Arguments
from locus_memory.backends.oracle.items.tokens import ANY, path_token, value_token
from locus_memory.store.filters import All, Comparison, Condition, Either

__all__ = ["compile_filter", "is_open"]

_MOST_CHOICES: Final = 16
"""Choices of `$in` that are searched by their tokens; for more, any value at the path is found."""

_MOST_TERMS: Final = 64
"""Tokens of a statement; the rest of a filter is compared only."""

_INDEX: Final = re.compile(r"[0-9]{1,9}")

# The path of JSON_EXISTS is a literal in every statement; the token is bound.
_HOLDS: Final = """JSON_EXISTS(i."FIELDS"{format}, '$[*]?(@ == $t)' PASSING {token} AS "t")"""


def is_open(condition: Condition) -> bool:
    """Return whether every item satisfies a condition."""
    return condition == All(())


def compile_filter(condition: Condition, arguments: Arguments, *, native_json: bool) -> str:
    """Return the SQL condition on the item `i` that every item with a match satisfies.

    Args:
        condition: A parsed filter.
        arguments: The binds of the statement; those of the condition are added.
        native_json: Whether the tokens are in a column of the type JSON.
    """
    compiled = _Compiler(arguments, "" if native_json else " FORMAT JSON").compile(condition)
    return "1 = 1" if compiled is None else compiled


class _Compiler:
    """A compiler; `None` is the condition that always holds."""

    def __init__(self, arguments: Arguments, format_: str) -> None:
        self._arguments = arguments
        self._format = format_
        self._terms = 0

    def compile(self, condition: Condition) -> str | None:
        if isinstance(condition, Comparison):
            tokens = _tokens(condition)
            return None if tokens is None else self._any_of(tokens)
        if isinstance(condition, All):
            parts = [part for each in condition.conditions if (part := self.compile(each))]
            return " AND ".join(f"({part})" for part in parts) or None
        if isinstance(condition, Either):
            found = [self.compile(each) for each in condition.conditions]
            return None if None in found else " OR ".join(f"({part})" for part in found)
        # What does not match a superset may still not match: a negation is compared only.
        return None

    def _any_of(self, tokens: list[str]) -> str | None:
        if self._terms + len(tokens) >= _MOST_TERMS:
            return None
        self._terms += len(tokens)
        return " OR ".join(map(self._holds, [*tokens, ANY]))

    def _holds(self, token: str) -> str:
        return _HOLDS.format(format=self._format, token=self._arguments.bind(token))


def _tokens(comparison: Comparison) -> list[str] | None:
    """Return the tokens of which a match has one; `None`: not known."""
    path = comparison.path
    if any(_INDEX.fullmatch(step) and str(int(step)) != step for step in path):
        # It may be an index of a list, which has another token then.
        return None
    operand, present = comparison.operand, [path_token(path)]
    if comparison.operator == "$eq":
        token = value_token(path, operand)
        return present if token is None else [token]
    if comparison.operator == "$in":
        choices = [value_token(path, choice) for choice in operand[: _MOST_CHOICES + 1]]
        few = len(choices) <= _MOST_CHOICES and None not in choices
        return list(dict.fromkeys(each for each in choices if each)) if few else present
    return present
