r"""The columns of a batch, each as one text that the server splits.

asyncpg takes as long for each element of a `text[]` as for a whole parameter. A column holds
numbers, JSON, digests, words, encoded keys, encoded paths or names, and only a path or a name
contains the character `\x01`. A path has it at the end, and never twice in a row; a name has it
neither at its start nor at its end, and never three times in a row.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

__all__ = [
    "MARK",
    "join_column",
    "join_names",
    "join_paths",
    "split_column",
    "split_names",
    "split_paths",
]

MARK: Final = "\x01"


def join_column(column: Iterable[str]) -> str:
    """Return a column as one text."""
    return MARK.join(column)


def join_paths(paths: Iterable[str]) -> str:
    """Return encoded namespaces as one text, each without the mark at its end."""
    return (MARK + MARK).join([path[:-1] for path in paths])


def join_names(names: Iterable[str]) -> str:
    """Return names of items as one text."""
    return (MARK + MARK + MARK).join(names)


def split_column(number: int) -> str:
    """Return the `text[]` of a column parameter, in which empty texts are null.

    If all of them are empty, it may have fewer elements than there are rows; `unnest` adds the
    missing nulls.
    """
    return f"string_to_array(${number}::text, chr(1), '')"


def split_paths(number: int) -> str:
    """Return the `text[]` of a parameter with paths, each without the mark at its end."""
    return f"string_to_array(${number}::text, chr(1) || chr(1))"


def split_names(number: int) -> str:
    """Return the `text[]` of a parameter with names."""
    return f"string_to_array(${number}::text, chr(1) || chr(1) || chr(1))"
