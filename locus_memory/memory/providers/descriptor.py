"""The descriptor of a memory provider: a row of the table of providers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from locus_memory._internal.providers.address import is_provider_name
from locus_memory._internal.quoting import quote
from locus_memory.errors import ConfigurationError

__all__ = ["MemoryOptions", "MemoryProvider", "checked_name"]


def checked_name(name: object) -> str:
    """Return a name of a memory provider or API in lower case.

    Raises:
        ConfigurationError: It is not valid in a provider string.
    """
    if not isinstance(name, str) or not is_provider_name(name):
        raise ConfigurationError(
            f"a memory provider's name is letters, digits and '_.+-', not {quote(name)}"
        )
    return name.lower()


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryOptions:
    """The options of a memory provider.

    Attributes:
        config: Keyword arguments of the API's class; those of a call take precedence. The repr
            does not show them: one may be a key.
    """

    config: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False)


@dataclass(frozen=True, slots=True)
class MemoryProvider:
    """The descriptor of a memory provider.

    Attributes:
        id: The first word of its strings.
        name: Its name for people.
        api: The name of a registered API, or its class as `"module:Class"`.
        options: The options that it passes to the class.

    Raises:
        ConfigurationError: The id is not valid in a provider string.
    """

    id: str
    name: str
    api: str
    options: MemoryOptions = field(default_factory=MemoryOptions)

    def __post_init__(self) -> None:
        object.__setattr__(self, "id", checked_name(self.id))
