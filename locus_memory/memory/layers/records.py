"""Records beside the memories: frozen values, and their plain JSON in a store."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, Final, TypeVar

from pydantic import TypeAdapter

from locus_memory.errors import InvalidArgumentError
from locus_memory.events import emit

__all__ = ["readable", "record_of", "value_of"]

_Record = TypeVar("_Record")


_form: Final[Callable[[Any], TypeAdapter[Any]]] = cache(TypeAdapter)


def value_of(record: object) -> dict[str, Any]:
    """Return a record as plain JSON."""
    value: dict[str, Any] = _form(type(record)).dump_python(record, mode="json")
    return value


def record_of(kind: type[_Record], value: object) -> _Record:
    """Return the record of a value that `value_of` returned; what it has beside that is ignored.

    Raises:
        InvalidArgumentError: The value is not such a record.
    """
    try:
        record: _Record = _form(kind).validate_python(value)
    except ValueError as error:
        raise InvalidArgumentError(f"a stored value that is not a {kind.__name__}") from error
    return record


def readable(read: Callable[[Any], _Record], value: object, layer: str) -> _Record | None:
    """Return the record that a function reads; `None`, with an event, if there is none."""
    try:
        return read(value)
    except InvalidArgumentError as error:
        emit("memory.record_unreadable", error=error, layer=layer)
        return None
