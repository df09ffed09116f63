"""The arguments of the batch verbs, checked."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from locus_memory._internal.quoting import quote
from locus_memory.errors import InvalidArgumentError
from locus_memory.store.item import Delete, Namespace, Put, Restored

__all__ = ["as_names", "as_operations", "as_puts", "as_restored"]

_SEQUENCES: Final = (tuple, list)
_ONLY_RESTORED: Final = "a Restored is for restore: a batch takes a Put"


def as_puts(items: Iterable[Put | tuple[Any, ...]]) -> list[Put]:
    """Return the items of a batch as `Put`s.

    Raises:
        InvalidArgumentError: An item is neither a `Put` nor a tuple of 3 or 4 fields.
    """
    return [item if type(item) is Put else _as_put(item) for item in items]


def as_names(keys: Iterable[tuple[Namespace, str]]) -> list[tuple[Namespace, str]]:
    """Return the names of a `get_batch` or `delete_batch`: pairs of a namespace and a key.

    Raises:
        InvalidArgumentError: A name is not a pair.
    """
    return [_as_name(name) for name in keys]


def _as_name(name: object) -> tuple[Namespace, str]:
    if not isinstance(name, _SEQUENCES) or len(name) != 2:  # noqa: PLR2004 - a pair
        raise InvalidArgumentError("a name of a batch is a pair (namespace, key)")
    namespace, key = name
    return namespace, key


def as_operations(operations: Iterable[Put | Delete]) -> list[Put | Delete]:
    """Return the operations of a `write_batch`.

    Raises:
        InvalidArgumentError: An operation is neither a `Put` nor a `Delete`.
    """
    return [_as_operation(operation) for operation in operations]


def _as_operation(operation: object) -> Put | Delete:
    if isinstance(operation, Restored):
        raise InvalidArgumentError(_ONLY_RESTORED)
    if not isinstance(operation, Put | Delete):
        raise InvalidArgumentError(
            f"an operation of write_batch is a Put or a Delete, not {type(operation).__name__}"
        )
    return operation


def _as_put(fields: object) -> Put:
    if isinstance(fields, Restored):
        raise InvalidArgumentError(_ONLY_RESTORED)
    if isinstance(fields, Put):
        return fields
    if not isinstance(fields, _SEQUENCES):
        raise InvalidArgumentError(
            f"an item of a batch is a Put or a tuple, not {type(fields).__name__}"
        )
    if len(fields) not in (3, 4):
        raise InvalidArgumentError(
            "an item of a batch is a Put, (namespace, key, value) or "
            f"(namespace, key, value, metadata), not a tuple of {len(fields)}"
        )
    return Put(*fields)


def as_restored(items: Iterable[Restored]) -> list[Restored]:
    """Return the items of a `restore`.

    Raises:
        InvalidArgumentError: An item is not a `Restored`, or a name is given twice.
    """
    given = list(items)
    names: set[tuple[Any, Any]] = set()
    for each in given:
        if not isinstance(each, Restored):
            raise InvalidArgumentError(
                f"an item of restore is a Restored, not {type(each).__name__}"
            )
        if (name := (tuple(each.namespace), each.key)) in names:
            raise InvalidArgumentError(
                f"restore takes each name once, and {quote(each.key)} is given twice"
            )
        names.add(name)
    return given
