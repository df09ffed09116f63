"""Records beside the memories: frozen values, and their plain JSON in a store."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, Final, TypeVar

from pydantic import ConfigDict, TypeAdapter

from locus_memory.errors import InvalidArgumentError
from locus_memory.events import emit

__all__ = ["LENIENT", "Tokens", "readable", "record_of", "value_of"]

_Record = TypeVar("_Record")

LENIENT: Final = ConfigDict(coerce_numbers_to_str=True)
"""How a record is read that has names of a caller's, such as the ids of messages: as texts."""

# Whatever its type says, the token counter of a caller may return fractions.
if TYPE_CHECKING:
    Tokens = int
else:
    Tokens = int | float

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
        raise InvalidArgumentError(f"a stored value that is no {kind.__name__}") from error
    return record


def readable(read: Callable[[Any], _Record], value: object, layer: str) -> _Record | None:
    """Return the record that a function reads; `None`, with an event, if there is none."""
    try:
        return read(value)
    except InvalidArgumentError as error:
        emit("memory.record_unreadable", error=error, layer=layer)
        return None
