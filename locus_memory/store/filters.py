"""Filters: parsed once into conditions, then evaluated here or translated by a backend.

A filter is a JSON object. `{"type": "note"}` tests equality, `{"age": {"$gte": 18}}` uses an
operator, and `$and`, `$or` (lists of filters) and `$not` (a filter) combine filters. All
conditions of one object must hold. A field is a dotted path (`"user.name"`; a number is an index
of a list), looked up in the item's metadata first, then in its value.

Types are never coerced: `1` is neither `True` nor `"1"`, but it equals `1.0`, since JSON has one
number type. A missing field matches only `$ne`, `$nin` and `{"$exists": False}`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from locus_memory._internal.quoting import quote
from locus_memory.errors import InvalidFilterError, ValueNotSerializableError
from locus_memory.store.json_values import encode_json

__all__ = [
    "MISSING",
    "MOST_LEVELS",
    "MOST_TERMS",
    "All",
    "Comparison",
    "Condition",
    "Either",
    "Negation",
    "check_size",
    "equal",
    "lookup",
    "matches",
    "parse_filter",
]

_INDEX = re.compile(r"[0-9]{1,9}")

MOST_TERMS: Final = 10_000
"""The limit of a filter's terms: its fields, operators and combinations, the further steps of
dotted paths, and each element of a list, such as a choice of `$in`."""

MOST_LEVELS: Final = 64
"""The limit of the nesting of a filter's objects and lists, with operands."""

MISSING: Final = object()
"""The result of `lookup` for a missing field."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """One operator on one field; `operator` keeps its `$`."""

    path: tuple[str, ...]
    operator: str
    operand: Any


@dataclass(frozen=True, slots=True)
class All:
    """Every condition must hold; none means everything matches."""

    conditions: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Either:
    """At least one condition must hold."""

    conditions: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Negation:
    """The condition must not hold."""

    condition: Condition


Condition = Comparison | All | Either | Negation


def parse_filter(filter: Mapping[str, Any] | None) -> All:  # noqa: A002 - the contract's name
    """Return the parsed filter; `None` and `{}` match everything.

    Raises:
        InvalidFilterError: An unknown operator, an operand of the wrong type, or more than
            `MOST_TERMS` terms or `MOST_LEVELS` levels.
    """
    if filter is None:
        return All(())
    check_size(filter)
    return _parse(filter)


def check_size(document: object) -> None:
    """Refuse a filter that is too large, before it is parsed.

    Raises:
        InvalidFilterError: It has more than `MOST_TERMS` terms, or `MOST_LEVELS` levels.
    """
    terms, level = 0, [document]
    for _ in range(MOST_LEVELS):
        below: list[object] = []
        for each in level:
            below += _parts(each)
            terms += _steps(each)
        terms += len(below)
        if terms > MOST_TERMS:
            raise InvalidFilterError(
                f"a filter has at most {MOST_TERMS:,} terms, and this one has more: "
                "search in parts, or put the searched value into one field"
            )
        level = [each for each in below if isinstance(each, Mapping | list | tuple)]
        if not level:
            return
    raise InvalidFilterError(f"a filter is nested at most {MOST_LEVELS} levels deep")


def _parts(each: object) -> Iterable[object]:
    if isinstance(each, Mapping):
        return each.values()
    return each if isinstance(each, list | tuple) else ()


def _steps(each: object) -> int:
    """Return the number of further steps in the paths of an object's fields."""
    names = each if isinstance(each, Mapping) else ()
    return sum(name.count(".") for name in names if isinstance(name, str))


def _parse(document: Any) -> All:
    _require(isinstance(document, Mapping), "a filter is an object", document)
    return All(tuple(c for name, operand in document.items() for c in _entry(name, operand)))


def _entry(name: Any, operand: Any) -> list[Condition]:
    _require(isinstance(name, str) and name != "", "a field is a non-empty string", name)
    _any_value("a field", name)
    if name in ("$and", "$or"):
        listed = isinstance(operand, list | tuple)
        _require(listed and operand, f"{name} takes a non-empty list of filters", operand)
        parts = tuple(_parse(part) for part in operand)
        return [All(parts) if name == "$and" else Either(parts)]
    if name == "$not":
        return [Negation(_parse(operand))]
    if _is_bare_combination(name, operand):
        raise InvalidFilterError(
            f"{name!r} in place of a field is no operator: did you mean '${name}'? For a field "
            f"of that name, write {{{name!r}: {{'$eq': ...}}}}"
        )
    if name.startswith("$"):
        raise InvalidFilterError(
            f"unknown operator {quote(name)} in place of a field; known: $and, $or, $not"
        )
    return _field(tuple(name.split(".")), operand)


def _is_bare_combination(name: str, operand: Any) -> bool:
    """Whether `and`, `or` or `not` has an operand of `$and`, `$or` or `$not`."""
    if name == "not":
        return isinstance(operand, Mapping) and not _has_operators(operand)
    filters = name in ("and", "or") and isinstance(operand, list | tuple) and operand
    return bool(filters) and all(isinstance(part, Mapping) for part in operand)


def _has_operators(operand: Mapping[Any, Any]) -> bool:
    return any(str(key).startswith("$") for key in operand)


def _field(path: tuple[str, ...], operand: Any) -> list[Condition]:
    if isinstance(operand, Mapping):
        if _has_operators(operand):
            return [_comparison(path, name, value) for name, value in operand.items()]
        _refuse_bare(path, operand)
    return [_comparison(path, "$eq", operand)]


def _refuse_bare(path: tuple[str, ...], operand: Mapping[Any, Any]) -> None:
    """Raise if every name in an object is that of an operator without its `$`."""
    if not operand or not {*_OPERATORS, "$not"}.issuperset(f"${name}" for name in operand):
        return
    field, name = quote(".".join(path)), next(iter(operand))
    raise InvalidFilterError(
        f"{name!r} on {field} is no operator: did you mean '${name}'? For an object that has "
        f"{name!r} as a field, write {{{field}: {{'$eq': {{{name!r}: ...}}}}}}, or "
        f"{quote('.'.join((*path, name)))} for that field alone"
    )


def _comparison(path: tuple[str, ...], operator: Any, operand: Any) -> Condition:
    if operator == "$not":
        _require(isinstance(operand, Mapping), "$not takes an object of operators", operand)
        return Negation(All(tuple(_field(path, operand))))
    if operator not in _OPERATORS:
        known = ", ".join((*_OPERATORS, "$not"))
        raise InvalidFilterError(
            f"unknown operator {quote(operator)} on {quote('.'.join(path))}; known: {known}"
        )
    _OPERATORS[operator][0](operator, operand)
    if operator == "$exists" and operand is False:
        return Negation(Comparison(path, "$exists", True))
    if operator in ("$ne", "$nin"):
        return Negation(Comparison(path, "$eq" if operator == "$ne" else "$in", operand))
    return Comparison(path, operator, operand)


def _require(holds: Any, rule: str, operand: Any) -> None:
    if not holds:
        raise InvalidFilterError(f"{rule}, not {quote(operand)}")


def _any_value(operator: str, operand: Any) -> None:
    try:
        encode_json(operand)
    except ValueNotSerializableError as error:
        raise InvalidFilterError(f"{operator} takes a JSON value: {error}") from error


def _ordered(operator: str, operand: Any) -> None:
    number = isinstance(operand, int | float) and not isinstance(operand, bool)
    _require(number or isinstance(operand, str), f"{operator} takes a number or a string", operand)
    _any_value(operator, operand)


def _listed(operator: str, operand: Any) -> None:
    _require(isinstance(operand, list | tuple), f"{operator} takes a list", operand)
    _any_value(operator, list(operand))


def _boolean(operator: str, operand: Any) -> None:
    _require(isinstance(operand, bool), f"{operator} takes true or false", operand)


def matches(condition: Condition, value: Any, metadata: Mapping[str, Any]) -> bool:
    """Whether an item with this value and metadata satisfies `condition`."""
    if isinstance(condition, Comparison):
        found = lookup(condition.path, metadata)
        if found is MISSING:
            found = lookup(condition.path, value)
        _, test = _OPERATORS[condition.operator]
        return found is not MISSING and test(found, condition.operand)
    if isinstance(condition, Negation):
        return not matches(condition.condition, value, metadata)
    quantifier = all if isinstance(condition, All) else any
    return quantifier(matches(part, value, metadata) for part in condition.conditions)


def lookup(path: Sequence[str], document: Any) -> Any:
    """Return the value at `path` inside `document`, or `MISSING`."""
    for step in path:
        if isinstance(document, Mapping):
            document = document.get(step, MISSING)
        elif isinstance(document, list) and _INDEX.fullmatch(step):
            index = int(step)
            document = document[index] if index < len(document) else MISSING
        else:
            return MISSING
    return document


def equal(left: Any, right: Any) -> bool:
    """Whether two JSON values are equal; a boolean never equals a number."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        return left.keys() == right.keys() and all(equal(left[key], right[key]) for key in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(equal, left, right))
    return bool(left == right)


def _comparable(left: Any, right: Any) -> bool:
    if isinstance(left, bool) or isinstance(right, bool):
        return False
    if isinstance(left, str):
        return isinstance(right, str)
    return isinstance(left, int | float) and isinstance(right, int | float)


def _contains(found: Any, operand: Any) -> bool:
    if isinstance(found, str):
        return isinstance(operand, str) and operand in found
    return isinstance(found, list) and any(equal(element, operand) for element in found)


def _is_one_of(found: Any, operand: Any) -> bool:
    # Python's own equality, for which 1 equals True, is far faster and excludes most.
    return found in operand and any(equal(found, choice) for choice in operand)


_OPERATORS: Final[Mapping[str, tuple[Callable[[str, Any], None], Callable[[Any, Any], bool]]]] = {
    "$eq": (_any_value, equal),
    "$ne": (_any_value, equal),
    "$gt": (_ordered, lambda found, operand: _comparable(found, operand) and found > operand),
    "$gte": (_ordered, lambda found, operand: _comparable(found, operand) and found >= operand),
    "$lt": (_ordered, lambda found, operand: _comparable(found, operand) and found < operand),
    "$lte": (_ordered, lambda found, operand: _comparable(found, operand) and found <= operand),
    "$in": (_listed, _is_one_of),
    "$nin": (_listed, _is_one_of),
    "$exists": (_boolean, lambda _found, _operand: True),
    "$contains": (_any_value, _contains),
}
"""The operators on a field: what refuses an operand, given with the operator's name; and whether an
existing field satisfies it, given the field's value and the operand.

`$ne` and `$nin` are parsed as negations, which a missing field satisfies. Only PostgreSQL has to
translate each operator; SQLite, OpenSearch and Oracle leave one that they do not know to `matches`.
"""
