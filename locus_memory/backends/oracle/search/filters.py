"""Filters as conditions on the tokens of items, which every matching item satisfies.

A condition may hold for other items as well, since a token is a digest and not all operators have
tokens. So each item that is found is compared with the filter itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from locus_memory.backends.oracle.items.queries import Arguments
from locus_memory.backends.oracle.items.tokens import ANY, path_token, value_token
from locus_memory.store.filters import All, Comparison, Condition, Either

__all__ = ["compile_filter"]

_MOST_CHOICES: Final = 16
"""Choices of `$in` that are searched by their tokens; for more, any value at the path is found."""

_MOST_TERMS: Final = 64
"""Tokens of a statement; a filter with more is compared only."""

_INDEX: Final = re.compile(r"[0-9]{1,9}")

# The path of JSON_EXISTS is a literal in every statement; the token is bound.
_HOLDS: Final = """JSON_EXISTS(i."FIELDS"{format}, '$[*]?(@ == $t)' PASSING {token} AS "t")"""


def compile_filter(condition: Condition, arguments: Arguments, *, native_json: bool) -> str:
    """Return the SQL condition on the item `i` that every item with a match satisfies.

    Args:
        condition: A parsed filter.
        arguments: The binds of the statement; those of the condition are added.
        native_json: Whether the tokens are in a column of the type JSON.
    """
    plan = _plan(condition)
    if plan is None or plan.size > _MOST_TERMS:
        return "1 = 1"
    form = "" if native_json else " FORMAT JSON"
    return plan.render(lambda token: _HOLDS.format(format=form, token=arguments.bind(token)))


@dataclass(frozen=True, slots=True)
class _Plan:
    """A condition on tokens.

    Attributes:
        tokens: The tokens of which an item has one; or else:
        parts: Plans.
        joint: `" AND "` or `" OR "`, between the tokens or the plans.
    """

    joint: str
    tokens: tuple[str, ...] = ()
    parts: tuple[_Plan, ...] = ()

    @property
    def size(self) -> int:
        """The number of tokens."""
        return len(self.tokens) + sum(part.size for part in self.parts)

    def render(self, holds: Callable[[str], str]) -> str:
        """Return the SQL condition; `holds` returns that of one token."""
        found = [*map(holds, self.tokens), *(f"({part.render(holds)})" for part in self.parts)]
        return self.joint.join(found)


def _plan(condition: Condition) -> _Plan | None:
    """Return the plan of a condition; `None`: every item may satisfy it."""
    if isinstance(condition, Comparison):
        tokens = _tokens(condition)
        return None if tokens is None else _Plan(" OR ", (*tokens, ANY))
    if isinstance(condition, All):
        parts = tuple(plan for each in condition.conditions if (plan := _plan(each)))
        return _Plan(" AND ", parts=parts) if parts else None
    if isinstance(condition, Either):
        plans = [_plan(each) for each in condition.conditions]
        known = tuple(plan for plan in plans if plan)
        return _Plan(" OR ", parts=known) if known and len(known) == len(plans) else None
    # What does not satisfy a superset may still not match: a negation is compared only.
    return None


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
