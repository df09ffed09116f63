"""Comparison of JSON documents, including the types of their numbers; pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

__all__ = ["is_plain", "own_copy", "same", "same_types"]


def same(old: Any, new: Any) -> bool:
    """Whether two JSON documents are the same, including the types of their numbers."""
    return old is new or (bool(old == new) and same_types(old, new))


def _same_leaf(old: Any, new: Any) -> bool:
    # 0.0 == -0.0, but their JSON differs.
    return type(old) is type(new) and (type(old) is not float or repr(old) == repr(new))


def _same_inside(old: Any, new: Any) -> bool:
    """Whether two containers that compare equal also have the same types."""
    if type(old) is list:
        kinds = set(map(type, old))
        if kinds <= _PLAIN or (kinds <= _NUMBERS and 0.0 not in old):
            return list(map(type, old)) == list(map(type, new))
        return all(map(same_types, old, new))
    for key, value in old.items():
        # Most are strings, and a call for each would be slow.
        if type(value) is not str and not same_types(value, new[key]):
            return False
    return True


def same_types(old: Any, new: Any) -> bool:
    """Whether two JSON documents that compare equal also have the same types."""
    if old is new:
        return True
    kind = type(old)
    if kind is dict or kind is list:
        return kind is type(new) and _same_inside(old, new)
    return _same_leaf(old, new)


_PLAIN = frozenset({str, type(None)})
_NUMBERS = _PLAIN | {int, bool, float}


def is_plain(document: Any, *, in_list: bool = False) -> bool:
    """Whether no list in a document holds a number or a boolean, at any depth.

    Then a document that compares equal is the same, without a check of types.

    Args:
        document: A JSON document.
        in_list: Whether it counts as an element of a list.
    """
    children: Iterable[Any]
    if isinstance(document, dict):
        children = document.values()
    elif isinstance(document, list):
        children, in_list = document, True
    else:
        return not (in_list and isinstance(document, int | float))
    for child in children:
        # Most are strings, and a call for each would be slow.
        if type(child) is not str and not is_plain(child, in_list=in_list):
            return False
    return True


def own_copy(document: Any) -> Any:
    """Return a copy that shares no dict and no list with `document`, but all other objects.

    Values that are not JSON are kept in the copy, so that the encoder can refuse them.
    """
    if type(document) is dict:
        return {
            key: value if type(value) is str else own_copy(value) for key, value in document.items()
        }
    if type(document) is list:
        return [value if type(value) is str else own_copy(value) for value in document]
    return document
