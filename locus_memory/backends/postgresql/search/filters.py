"""Filters as SQL: every path and operand is bound, and the result equals that of `matches`."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final

from locus_memory.backends.postgresql.items.documents import encode_document, encode_string
from locus_memory.store.filters import All, Comparison, Condition, Negation

__all__ = ["Arguments"]

_ORDER: Final = {"$gt": ">", "$gte": ">=", "$lt": "<", "$lte": "<="}

# A step that `#>` reads as an index of a list, and one that the library's `lookup` does.
_NUMBER: Final = re.compile(r"\s*[+-]?[0-9]+\s*")
_INDEX: Final = re.compile(r"[0-9]{1,9}")


class Arguments:
    """The parameters of a statement; the same value is bound once."""

    def __init__(self) -> None:
        self.values: list[Any] = []
        self._names: dict[tuple[str, Any], str] = {}

    def bind(self, value: str | float | tuple[str, ...], kind: str) -> str:
        """Return the parameter of a value; `kind` is its type."""
        name = kind, value
        if name not in self._names:
            self.values.append(value)
            self._names[name] = f"${len(self.values)}::{kind}"
        return self._names[name]

    def compile(
        self, condition: Condition, *, metadata: str = "i.metadata", value: str | None = "i.value"
    ) -> str:
        """Return an SQL expression that is true or false.

        Args:
            condition: A parsed filter.
            metadata: The column with the metadata, `jsonb` of `documents`.
            value: The column with the value, likewise; `None` if there is none.
        """
        # The protocol counts parameters in 15 bits: no filter has so many terms, see `MOST_TERMS`.
        return f"({_Compiler(self.bind, metadata, value).compile(condition)})"


@dataclass(frozen=True, slots=True)
class _Compiler:
    """A compiler of one filter."""

    bind: Callable[[str | tuple[str, ...], str], str]
    metadata: str
    value: str | None

    def compile(self, condition: Condition) -> str:
        if isinstance(condition, Comparison):
            return self.compare(condition)
        if isinstance(condition, Negation):
            return f"NOT ({self.compile(condition.condition)})"
        joint, nothing = (" AND ", "true") if isinstance(condition, All) else (" OR ", "false")
        return joint.join(f"({self.compile(part)})" for part in condition.conditions) or nothing

    def compare(self, comparison: Comparison) -> str:
        found = self.find(comparison.path)
        operand = comparison.operand
        if comparison.operator == "$exists":
            return f"{found} IS NOT NULL"
        if comparison.operator == "$eq":
            return f"coalesce({found} = {self.document(operand)}, false)"
        if comparison.operator == "$in":
            # An array that is built once, not for every row.
            choices = f"ARRAY(SELECT jsonb_array_elements({self.document(list(operand))}))"
            return f"coalesce({found} = ANY ({choices}), false)"
        if comparison.operator == "$contains":
            return self.contains(found, operand)
        return self.order(found, _ORDER[comparison.operator], operand)

    def find(self, path: tuple[str, ...]) -> str:
        """Return the value at the path, in the metadata first; NULL: none."""
        here = self.walk(self.metadata, path)
        return here if self.value is None else f"coalesce({here}, {self.walk(self.value, path)})"

    def walk(self, document: str, path: tuple[str, ...]) -> str:
        for plain, steps in groupby(map(encode_string, path), key=_means_the_same):
            if plain:
                document = f"{document} #> {self.bind(tuple(steps), 'text[]')}"
            else:
                # This operator never selects from a list.
                names = (f" -> {self.bind(step, 'text')}" for step in steps)
                document = f"{document}{''.join(names)}"
        return f"({document})"

    def document(self, operand: Any) -> str:
        return self.bind(encode_document(operand), "jsonb")

    def order(self, found: str, sign: str, operand: Any) -> str:
        if isinstance(operand, str):
            text = self.bind(encode_string(operand), "text")
            kind, same = "string", f"({found} #>> '{{}}') COLLATE \"C\" {sign} {text}"
        else:
            kind, same = "number", f"{found} {sign} {self.document(operand)}"
        return f"CASE WHEN jsonb_typeof({found}) = '{kind}' THEN {same} ELSE false END"

    def contains(self, found: str, operand: Any) -> str:
        elements = f"jsonb_array_elements({found}) AS each (element)"
        same = f"element = {self.document(operand)}"
        array = f"EXISTS (SELECT FROM {elements} WHERE {same})"
        text = "false"
        if isinstance(operand, str):
            part = self.bind(encode_string(operand), "text")
            text = f"strpos(({found} #>> '{{}}') COLLATE \"C\", {part}) > 0"
        return (
            f"CASE jsonb_typeof({found}) WHEN 'array' THEN {array} "
            f"WHEN 'string' THEN {text} ELSE false END"
        )


def _means_the_same(step: str) -> bool:
    """Return whether the operator `#>` reads a step as the library does."""
    return _NUMBER.fullmatch(step) is None or _INDEX.fullmatch(step) is not None
