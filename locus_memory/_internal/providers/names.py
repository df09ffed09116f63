"""Names that a caller registers: they are checked, and each may be taken back."""

from __future__ import annotations

from collections.abc import Callable, MutableMapping
from typing import TypeVar

from locus_memory._internal.providers.address import is_provider_name
from locus_memory._internal.quoting import quote
from locus_memory.errors import ConfigurationError

__all__ = ["checked_name", "register"]

_Row = TypeVar("_Row")


def checked_name(name: object, what: str) -> str:
    """Return a name in lower case.

    Args:
        name: The name.
        what: What it is, for the error.

    Raises:
        ConfigurationError: It is not valid in a provider string.
    """
    if not isinstance(name, str) or not is_provider_name(name):
        raise ConfigurationError(f"{what} is letters, digits and '_.+-', not {quote(name)}")
    return name.lower()


def register(table: MutableMapping[str, _Row], name: str, row: _Row) -> Callable[[], None]:
    """Write a row under a name; return a function that deletes it, unless it is another one then.

    Args:
        table: The table.
        name: The name, see `checked_name`.
        row: The row.
    """
    table[name] = row

    def unregister() -> None:
        if table.get(name) is row:
            del table[name]

    return unregister
