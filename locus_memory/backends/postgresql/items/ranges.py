"""The range of a statement: a namespace or a tree of them, and a range of keys."""

from __future__ import annotations

from typing import Final

from locus_memory.backends.postgresql.items.naming import (
    AFTER_KEYS,
    LONGEST,
    first_name,
    name_bound,
    scope_of,
    whole_name,
)
from locus_memory.backends.postgresql.search.filters import Arguments
from locus_memory.backends.selection import KeyRange, PathScope

__all__ = ["Scope", "key_condition"]

_LEAST: Final = "\x01"
"""The lowest character of an encoded text: no text sorts between a text and that text with it."""

_WHOLE_NAME: Final = "(i.path || chr(1) || i.key)"


class Scope(PathScope[str]):
    """The namespaces of a statement, and its moment."""

    __slots__ = ()

    @property
    def high(self) -> str:
        """The upper bound of every path in the scope."""
        # No path is between a path and that of its first descendant.
        return (self.bound or "") if self.recursive else self.path + _LEAST

    def condition(self, table: str, arguments: Arguments) -> str:
        """Return the condition that a row of a table is in the scope."""
        if not self.recursive:
            return f"{table}.scope = {arguments.bind(scope_of(self.path), 'uuid')}"
        return _between(table, f"{table}.path", self.path, self.high, arguments)

    def live(self, arguments: Arguments) -> str:
        """Return the condition that the item `i` has not expired."""
        now = f"(SELECT {arguments.bind(self.now, 'text')}::timestamptz)"
        return f"(i.expires_at IS NULL OR i.expires_at > {now})"


def key_condition(keys: KeyRange, path: str, arguments: Arguments) -> str:
    """Return the condition on the items `i` at a path that their keys are in a range."""
    first, bound = keys.bounds()
    low = whole_name(path, first)
    high = path + AFTER_KEYS if bound is None else whole_name(path, bound)
    return _between("i", _WHOLE_NAME, low, high, arguments)


def _between(table: str, whole: str, low: str, high: str, arguments: Arguments) -> str:
    """Return the condition that the names of a table are in a range.

    Args:
        table: The table.
        whole: The expression for an uncut name, to check names that were cut.
        low: The first name of the range.
        high: The first name after it.
        arguments: The parameters of the statement; those of the condition are added.
    """
    first, bound = arguments.bind(first_name(low), "text"), arguments.bind(name_bound(high), "text")
    found = f"{table}.name >= {first} AND {table}.name < {bound}"
    # The planner assumes that each condition leaves rows out.
    if max(len(low), len(high)) <= LONGEST:
        return found
    low, high = arguments.bind(low, "text"), arguments.bind(high, "text")
    return f"{found} AND {whole} >= {low} AND {whole} < {high}"
