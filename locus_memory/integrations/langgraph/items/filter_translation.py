"""LangGraph's filters as filters of the library, with a test for the parts that differ.

A field of LangGraph is one key of the value, and an object in a filter means each of its fields,
`{"author": {"name": "Ada"}}`; a field of the library is a dotted path. Where the two differ, the
database returns more than the matching items, and the exact test runs here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from locus_memory._internal.quoting import quote
from locus_memory.errors import InvalidFilterError
from locus_memory.store.filters import MISSING, check_size, lookup, matches, parse_filter
from locus_memory.store.item import StoreItem

__all__ = ["NOTES", "Filter", "compile_filter"]

NOTES: Final = "langgraph"
"""The metadata key of LangGraph's notes on an item; no filter sees it."""

_FIELD: Final = "field"
_NEGATIVE: Final = frozenset({"$ne", "$nin", "$not", "$exists"})

_Test = Callable[[Any], bool]
_Document = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Filter:
    """A compiled filter.

    Attributes:
        pushed: The filter for the database; every item that matches the filter matches this too.
        exact: Whether no other item matches `pushed`.
        test: Whether a document, the fields of an item, matches the filter.
    """

    pushed: dict[str, Any]
    exact: bool
    test: Callable[[_Document], bool]

    @property
    def is_empty(self) -> bool:
        """Whether every item matches."""
        return self.exact and not self.pushed

    def matches(self, item: StoreItem) -> bool:
        """Whether an item matches the filter; fields of the metadata take precedence."""
        value: _Document = item.value if isinstance(item.value, Mapping) else {}
        found = {name: each for name, each in item.metadata.items() if name != NOTES}
        return self.test({**value, **found})


def compile_filter(document: object) -> Filter:
    """Return the compiled filter; `None` and `{}` match everything.

    Raises:
        InvalidFilterError: As for `locus_memory.store.filters.parse_filter`.
    """
    if document is None:
        return _compile({})
    check_size(document)
    return _compile(document)


def _compile(document: object) -> Filter:
    if not isinstance(document, Mapping):
        raise InvalidFilterError(f"a filter is an object, not {quote(document)}")
    parts = [_entry(name, wanted) for name, wanted in document.items()]
    return Filter(
        {name: each for part in parts for name, each in part.pushed.items()},
        all(part.exact for part in parts),
        lambda fields: all(part.test(fields) for part in parts),
    )


def _entry(name: object, wanted: Any) -> Filter:
    if not isinstance(name, str) or name.startswith("$"):
        return _combination(name, wanted)
    test = _test_of(wanted)
    pushed, exact = _push((name,), wanted)
    parse_filter(pushed)
    return Filter(pushed, exact, lambda fields: test(_look_up(name, fields)))


def _combination(name: Any, wanted: Any) -> Filter:
    _check_combination(name, wanted)
    if name == "$not":
        part = _compile(wanted)
        pushed = {"$not": part.pushed} if part.exact else {}
        return Filter(pushed, part.exact, lambda fields: not part.test(fields))
    parts = [_compile(each) for each in wanted]
    quantifier = all if name == "$and" else any
    return Filter(
        {name: [part.pushed for part in parts]},
        all(part.exact for part in parts),
        lambda fields: quantifier(part.test(fields) for part in parts),
    )


def _check_combination(name: Any, wanted: Any) -> None:
    # The filters inside are checked one by one.
    if isinstance(wanted, Mapping):
        parse_filter({name: {}})
    else:
        parse_filter({name: [{} for _ in wanted] if isinstance(wanted, list | tuple) else wanted})


def _look_up(name: str, fields: _Document) -> Any:
    """Return a field; a name with dots that is not a field is a path."""
    return fields[name] if name in fields else lookup(name.split("."), fields)


def _test_of(wanted: Any) -> _Test:
    """Return the test of a field, or of `MISSING`."""
    if isinstance(wanted, Mapping) and not _has_operators(wanted):
        return partial(_is_object, {key: _test_of(each) for key, each in wanted.items()})
    if isinstance(wanted, list | tuple) and _holds_object(wanted):
        return partial(_is_list, [_test_of(each) for each in wanted])
    condition = parse_filter({_FIELD: _operators(wanted)})
    return lambda found: matches(condition, {} if found is MISSING else {_FIELD: found}, {})


def _is_object(tests: Mapping[str, _Test], found: Any) -> bool:
    return isinstance(found, Mapping) and all(
        test(found.get(key, MISSING)) for key, test in tests.items()
    )


def _is_list(tests: list[_Test], found: Any) -> bool:
    return (
        isinstance(found, list)
        and len(found) == len(tests)
        and all(test(each) for test, each in zip(tests, found, strict=True))
    )


def _push(path: tuple[Any, ...], wanted: Any) -> tuple[dict[str, Any], bool]:
    """Return the database's filter for a field, and whether it is exact."""
    if not _is_plain(path):
        return {}, False
    if isinstance(wanted, Mapping) and not _has_operators(wanted):
        children = [_push((*path, key), each) for key, each in wanted.items()]
        pushed = {name: each for child, _ in children for name, each in child.items()}
        return pushed, bool(children) and all(exact for _, exact in children)
    if isinstance(wanted, list | tuple) and _holds_object(wanted):
        return {}, False
    operators = _operators(wanted)
    if len(path) > 1 and not _NEGATIVE.isdisjoint(operators):
        # LangGraph's `$ne` does not match if there is no object around the field.
        return {}, False
    return {".".join(path): operators}, True


def _operators(wanted: Any) -> dict[Any, Any]:
    if isinstance(wanted, Mapping):
        return dict(wanted)
    return {"$eq": list(wanted) if isinstance(wanted, tuple) else wanted}


def _is_plain(path: tuple[Any, ...]) -> bool:
    """Whether a path has the same meaning for the database and for LangGraph."""
    *above, last = path
    # In a path of the library, a number is also an index of a list.
    return (
        isinstance(last, str)
        and last != ""
        and "." not in last
        and not (above and last.isdecimal())
        and path != (NOTES,)
    )


def _has_operators(wanted: Mapping[Any, Any]) -> bool:
    return any(str(key).startswith("$") for key in wanted)


def _holds_object(values: list[Any] | tuple[Any, ...]) -> bool:
    return any(
        _holds_object(each) if isinstance(each, list | tuple) else isinstance(each, Mapping)
        for each in values
    )
