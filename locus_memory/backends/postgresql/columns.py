r"""The columns of a batch, each as one text that the server splits.

asyncpg takes as long for each element of a `text[]` as for a whole parameter. What is in a column
is numbers, JSON, digests, words, encoded keys or encoded paths, so that none but a path has the
character `\x01`, and a path has it at the end and never twice in a row.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

__all__ = ["join_column", "join_paths", "split_column", "split_paths"]

_MARK: Final = "\x01"


def join_column(column: Iterable[str]) -> str:
    """Return a column as one text."""
    return _MARK.join(column)


def join_paths(paths: Iterable[str]) -> str:
    """Return encoded namespaces as one text, each without the mark at its end."""
    return (_MARK + _MARK).join([path[:-1] for path in paths])


def split_column(number: int) -> str:
    """Return the `text[]` of the column that is a parameter; what is empty is null in it.

    Where all of them are empty, it may have fewer elements than there are rows; `unnest` makes up
    for that with nulls, too.
    """
    return f"string_to_array(${number}::text, chr(1), '')"


def split_paths(number: int) -> str:
    """Return the `text[]` of the paths that are a parameter, each without the mark at its end."""
    return f"string_to_array(${number}::text, chr(1) || chr(1))"
