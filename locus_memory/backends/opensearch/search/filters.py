"""Filters as queries over the terms of `tokens.py`; pure.

A query returns each item that satisfies the filter, and seldom another one: the end of a long text
is not in its term. So a reader checks each hit by `matches` of `locus_memory.store.filters`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, Final

from locus_memory.backends.opensearch.search.tokens import (
    ELEMENT,
    MARK,
    OVERFLOW,
    ROOT,
    SHORT,
    extend,
    number_text,
    string_text,
    value_text,
)
from locus_memory.store.encoding import encode_text
from locus_memory.store.filters import All, Comparison, Condition, Negation

__all__ = ["FIELD", "compile_filter"]

FIELD: Final = "terms"
"""The field of the terms."""

Query = dict[str, Any]

_ALL: Final[Query] = {"match_all": {}}
_NONE: Final[Query] = {"match_none": {}}

_MOST_CLAUSES: Final = 500
"""The server takes 1,024 by default, with those of the search around the filter."""

_MOST_LEVELS: Final = 12

_ODD_INDEX: Final = re.compile(r"0[0-9]{1,8}")
"""A step that is another index of a list than it is a name in an object."""

_AFTER_MARK: Final = "\x01"
_RANGES: Final = {"$gt": "gt", "$gte": "gte", "$lt": "lt", "$lte": "lte"}
_SPECIAL: Final = re.compile(r"([*?\\])")


def compile_filter(condition: Condition) -> Query:
    """Return a query that finds every item that satisfies a filter, and maybe others."""
    query = _compiled(condition, is_upper=True)
    if query == _ALL or _clauses(query) > _MOST_CLAUSES or _levels(query) > _MOST_LEVELS:
        return _ALL
    return _any_of([query, _term(OVERFLOW)])


def _compiled(condition: Condition, *, is_upper: bool) -> Query:
    """Return a query that finds at least what satisfies the condition, or nothing but that.

    Args:
        condition: The condition.
        is_upper: Whether the query finds at least that.
    """
    if isinstance(condition, Comparison):
        return _bounds(condition)[is_upper]
    if isinstance(condition, Negation):
        return _not(_compiled(condition.condition, is_upper=not is_upper))
    parts = (_compiled(each, is_upper=is_upper) for each in condition.conditions)
    return _all_of(parts) if isinstance(condition, All) else _any_of(parts)


def _bounds(comparison: Comparison) -> tuple[Query, Query]:
    """Return what finds nothing but the matches, and what finds all of them."""
    if any(map(_ODD_INDEX.fullmatch, comparison.path)):
        return _NONE, _ALL
    path = ROOT
    for step in comparison.path:
        path = extend(path, step)
    operator, operand = comparison.operator, comparison.operand
    if operator == "$exists":
        exact = {"prefix": {FIELD: path + MARK}}
    elif operator == "$eq":
        exact = _term(path + MARK + value_text(operand))
    elif operator == "$in":
        exact = _terms(path + MARK + value_text(each) for each in operand)
    elif operator == "$contains":
        return _contains(path, operand)
    elif operator not in _RANGES:
        return _NONE, _ALL
    elif isinstance(operand, str):
        return _string_range(path + MARK + "s", _RANGES[operator], operand)
    else:
        exact = _number_range(path + MARK + "n", _RANGES[operator], operand)
    return exact, exact


def _number_range(start: str, sign: str, operand: float) -> Query:
    text = start + number_text(operand)
    if sign[0] == "g":
        return _range(**{sign: text}, lt=start[:-1] + "o")
    return _range(gt=start, **{sign: text})


def _string_range(start: str, sign: str, operand: str) -> tuple[Query, Query]:
    """Return the range of strings; those as long as a long operand may be on either side."""
    end = start[:-1] + "t"
    if len(operand) <= SHORT:
        text = start + string_text(operand)
        exact = (
            _range(**{sign: text}, lt=end) if sign[0] == "g" else _range(gte=start, **{sign: text})
        )
        return exact, exact
    same = start + encode_text(operand[:SHORT]) + MARK
    after = same[:-1] + _AFTER_MARK
    if sign[0] == "g":
        return _range(gte=after, lt=end), _range(gte=same, lt=end)
    return _range(gte=start, lt=same), _range(gte=start, lt=after)


def _contains(path: str, operand: Any) -> tuple[Query, Query]:
    element = _term(path + MARK + ELEMENT + value_text(operand))
    if not isinstance(operand, str):
        return element, element
    start = _literal(path + MARK + "s") + "*"
    found = [element, _wildcard(f"{start}{MARK}*")]
    if len(operand) <= SHORT:
        found.append(_wildcard(f"{start}{_literal(encode_text(operand))}*"))
    return element, _any_of(found)


def _literal(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", text)


def _wildcard(pattern: str) -> Query:
    return {"wildcard": {FIELD: {"value": pattern}}}


def _range(**bounds: str) -> Query:
    return {"range": {FIELD: bounds}}


def _term(term: str) -> Query:
    return {"term": {FIELD: term}}


def _terms(terms: Iterable[str]) -> Query:
    found = list(dict.fromkeys(terms))
    if len(found) == 1:
        return _term(found[0])
    return {"terms": {FIELD: found}} if found else _NONE


def _any_of(queries: Iterable[Query]) -> Query:
    """Return a query for what any of the queries finds; all their terms are one clause."""
    terms: list[str] = []
    others: list[Query] = []
    for query in queries:
        if query == _ALL:
            return _ALL
        if "term" in query:
            terms.append(query["term"][FIELD])
        elif "terms" in query:
            terms += query["terms"][FIELD]
        elif query != _NONE:
            others.append(query)
    found = [_terms(terms), *others] if terms else others
    if len(found) == 1:
        return found[0]
    return {"bool": {"should": found, "minimum_should_match": 1}} if found else _NONE


def _all_of(queries: Iterable[Query]) -> Query:
    """Return a query for what all of the queries find; the negations are one of them."""
    found: list[Query] = []
    negated: list[Query] = []
    for query in queries:
        if query == _NONE:
            return _NONE
        if query.get("bool", {}).keys() == {"must_not"}:
            negated += query["bool"]["must_not"]
        elif query != _ALL:
            found.append(query)
    if negated:
        found.append(_not(_any_of(negated)))
    if len(found) == 1:
        return found[0]
    return {"bool": {"filter": found}} if found else _ALL


def _not(query: Query) -> Query:
    if query == _ALL:
        return _NONE
    return _ALL if query == _NONE else {"bool": {"must_not": [query]}}


def _inner(query: Query) -> Sequence[Query]:
    found: list[Query] = []
    for key in ("filter", "should", "must_not"):
        found += query.get("bool", {}).get(key, ())
    return found


def _clauses(query: Query) -> int:
    return sum(map(_clauses, _inner(query))) if "bool" in query else 1


def _levels(query: Query) -> int:
    return 1 + max(map(_levels, _inner(query)), default=0)
