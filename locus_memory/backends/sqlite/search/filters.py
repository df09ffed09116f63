r"""Filters as SQL: every path and operand is bound, and the result equals that of `matches`.

SQLite reads a JSON document a little differently than Python does: it rounds numbers in other
ways, `\u0000` ends a string, some keys have no path. Where this could matter, the
SQL calls the function `locus_matches`, which is Python's own `matches`.
"""

from __future__ import annotations

import json
import sqlite3
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

from locus_memory.store.filters import (
    All,
    Comparison,
    Condition,
    Either,
    Negation,
    matches,
)
from locus_memory.store.json_values import decode_json

__all__ = ["compile_filter", "register_functions"]

# SQLite's parser allows 1,000 levels; a comparison takes about ten.
_MOST_COMPARISONS: Final = 40
_INT64: Final = range(-(2**63), 2**63)
_SIGNS: Final = {
    "$eq": "=",
    "$gt": ">",
    "$gte": ">=",
    "$lt": "<",
    "$lte": "<=",
    "$contains": "=",
    "$exists": "",
}
"""The operators that are translated, with the sign of a comparison."""


def compile_filter(
    condition: Condition, *, metadata: str, value: str
) -> tuple[str, dict[str, Any]]:
    """Return an SQL expression with the value 1 or 0, and its parameters.

    Args:
        condition: A parsed filter.
        metadata: The column with the metadata, a JSON text; with its table's name, since
            `json_each` has a `value` too.
        value: The column with the value, likewise; `"NULL"` if there is none.
    """
    if condition == All(()):
        return "1", {}
    compiler = _Compiler(metadata, value)
    exactly = compiler.ask_python(condition)
    if _size(condition) > _MOST_COMPARISONS:
        return exactly, compiler.bound
    quickly = compiler.compile(condition)
    documents = (name for name in (metadata, value) if name != "NULL")
    escaped = " OR ".join(f"instr({name}, '\\u0000')" for name in documents)
    return f"CASE WHEN {escaped} THEN {exactly} ELSE {quickly} END", compiler.bound


def _size(condition: Condition) -> int:
    """Return the number of comparisons and levels of a condition."""
    if isinstance(condition, Comparison):
        return len(condition.operand) if condition.operator == "$in" else 1
    if isinstance(condition, Negation):
        return 1 + _size(condition.condition)
    return 1 + sum(map(_size, condition.conditions))


@dataclass(slots=True)
class _Compiler:
    """A compiler that collects the parameters of one filter."""

    metadata: str
    value: str
    bound: dict[str, Any] = field(default_factory=dict)

    def bind(self, value: Any) -> str:
        name = f"filter{len(self.bound)}"
        self.bound[name] = value
        return f":{name}"

    def ask_python(self, condition: Condition) -> str:
        written = json.dumps(_document(condition))
        return f"locus_matches({self.bind(written)}, {self.value}, {self.metadata})"

    def compile(self, condition: Condition) -> str:
        if isinstance(condition, Comparison):
            return self.compare(condition)
        if isinstance(condition, Negation):
            return f"NOT ({self.compile(condition.condition)})"
        joint, nothing = (" AND ", "1") if isinstance(condition, All) else (" OR ", "0")
        return joint.join(f"({self.compile(part)})" for part in condition.conditions) or nothing

    def compare(self, comparison: Comparison) -> str:
        if comparison.operator == "$in":
            choices = (Comparison(comparison.path, "$eq", each) for each in comparison.operand)
            return self.compile(Either(tuple(choices)))
        known = comparison.operator in _SIGNS
        if not (known and _has_path(comparison) and _has_operand(comparison)):
            return self.ask_python(comparison)
        path = self.bind("$" + "".join(f'."{step}"' for step in comparison.path))
        test = self.test_for(comparison)
        here = (
            f"WHEN json_type({document}, {path}) IS NOT NULL"
            f" THEN {test.format(document=document, path=path)}"
            for document in (self.metadata, self.value)
            if document != "NULL"
        )
        return f"CASE {' '.join(here)} ELSE 0 END"

    def test_for(self, comparison: Comparison) -> str:
        """Return the test of an existing field; `{document}` and `{path}` are its place."""
        if comparison.operator == "$exists":
            return "1"
        found = "json_type({document}, {path})", "json_extract({document}, {path})"
        if comparison.operator != "$contains":
            return self.one(comparison, *found, _SIGNS[comparison.operator])
        element = self.one(comparison, "each.type", "each.value", "=")
        elements = f"json_each({{document}}, {{path}}) AS each WHERE {element}"
        text = "0"
        if isinstance(comparison.operand, str):
            text = f"instr({found[1]}, {self.bind(comparison.operand)}) > 0"
        array = f"EXISTS (SELECT 1 FROM {elements})"  # noqa: S608 - the operand is bound
        return f"CASE {found[0]} WHEN 'array' THEN {array} WHEN 'text' THEN {text} ELSE 0 END"

    def one(self, comparison: Comparison, kind: str, found: str, sign: str) -> str:
        """Return the comparison of one JSON value with a plain operand."""
        operand = comparison.operand
        if operand is None:
            return f"{kind} = 'null'"
        if isinstance(operand, bool):
            return f"{kind} = '{'true' if operand else 'false'}'"
        same = f"{found} {sign} {self.bind(operand)}"
        if isinstance(operand, str):
            return f"CASE {kind} WHEN 'text' THEN {same} ELSE 0 END"
        # SQLite rounds a fraction, or an integer of more than 63 bits, as it reads it.
        return (
            f"CASE WHEN {kind} NOT IN ('integer', 'real') THEN 0"
            f" WHEN typeof({found}) = 'integer' THEN {same}"
            f" ELSE {self.ask_python(comparison)} END"
        )


def _has_path(comparison: Comparison) -> bool:
    """Return whether SQLite can name the field; digits may be a key or an index."""
    return all(
        step and not step.isdigit() and step.isprintable() and not set(step) & set('"\\')
        for step in comparison.path
    )


def _has_operand(comparison: Comparison) -> bool:
    """Return whether SQLite can store the operand."""
    operand = comparison.operand
    if isinstance(operand, int):
        return operand in _INT64
    if isinstance(operand, str):
        return "\0" not in operand
    return operand is None or isinstance(operand, float)


def register_functions(connection: sqlite3.Connection) -> None:
    """Register the SQL function that compiled filters call as a fallback."""
    connection.create_function("locus_matches", 3, _matches, deterministic=True)


def _matches(condition: str, value: str | None, metadata: str) -> bool:
    found = None if value is None else decode_json(value)
    return matches(_condition(condition), found, decode_json(metadata))


def _document(condition: Condition) -> Any:
    """Return the condition as JSON, each operator's name first."""
    if isinstance(condition, Comparison):
        operand = condition.operand
        listed = list(operand) if isinstance(operand, tuple) else operand
        return [condition.operator, list(condition.path), listed]
    if isinstance(condition, Negation):
        return ["not", _document(condition.condition)]
    name = "all" if isinstance(condition, All) else "any"
    return [name, *map(_document, condition.conditions)]


@lru_cache(maxsize=128)
def _condition(written: str) -> Condition:
    return _read_condition(json.loads(written))


def _read_condition(document: list[Any]) -> Condition:
    """Return the condition of a document that `_document` returned."""
    name, *parts = document
    if name == "not":
        return Negation(_read_condition(parts[0]))
    if name in ("all", "any"):
        conditions = tuple(map(_read_condition, parts))
        return All(conditions) if name == "all" else Either(conditions)
    return Comparison(tuple(parts[0]), name, parts[1])
