"""Tables of models, and of other parts with a name: the class and the extra of each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from inspect import Parameter, signature
from typing import Any, Generic, TypeVar

from locus_memory._internal.providers.address import parse_address
from locus_memory._internal.providers.construction import (
    Construction,
    did_you_mean,
    of_factory,
)
from locus_memory._internal.providers.names import checked_name, register
from locus_memory._internal.providers.plugins import Plugins
from locus_memory._internal.quoting import quote
from locus_memory.errors import ConfigurationError, UnknownProviderError

__all__ = ["ModelRow", "ModelTable"]

_Model = TypeVar("_Model")


@dataclass(frozen=True, slots=True)
class ModelRow:
    """A row of the table.

    Attributes:
        target: A class or function as `"module:name"`.
        parameter: The parameter that gets the part after the colon; `None`: there is none.
        is_number: Whether that part is an integer.
    """

    target: str
    parameter: str | None = None
    is_number: bool = False

    def hint(self, name: str, written: str | None) -> str | int | None:
        """Return the value of the part after the colon; `None`: there is none.

        Raises:
            ConfigurationError: It is no integer, where one is expected.
        """
        if written is None or not self.is_number:
            return written
        try:
            return int(written)
        except ValueError:
            raise ConfigurationError(
                f"{name}: {self.parameter} is a number, as in '{name}:20', not {quote(written)}"
            ) from None


class ModelTable(Generic[_Model]):
    """A table from strings such as `"local"` or `"openai:text-embedding-3-small"` to models.

    Args:
        what: The kind of the models, for messages.
        kind: The protocol of the models.
        rows: The built-in models, by name.
        group: The group of entry points of other distributions, whose names are names of models and
            whose values are factories as for `register`; `None`: there is no such group.
    """

    def __init__(
        self,
        what: str,
        kind: type[Any],
        rows: Mapping[str, ModelRow],
        *,
        group: str | None = None,
    ) -> None:
        self._what = what
        self._kind = kind
        self._rows = rows
        self._plugins = Plugins[Callable[..., Any]](group or "", Callable, "factory")  # type: ignore[arg-type] # it is a class for isinstance
        self._factories: dict[str, Callable[..., _Model]] = {}

    def names(self) -> list[str]:
        """Return the known names, in alphabetical order."""
        return sorted({*self._rows, *self._factories, *self._plugins.names()})

    def make(self, where: str, options: Mapping[str, Any]) -> _Model:
        """Return a new model.

        Raises:
            UnknownProviderError: The name is not registered.
            UnknownOptionError: Its class has no such option.
            ConfigurationError: An invalid string, arguments that its class refuses, or a plugin
                that does not load.
        """
        address = parse_address(where)
        name, hint = address.provider, address.hint
        factory: Callable[..., Any] | None = self._factories.get(name)
        if factory is None and name not in self._rows:
            factory = self._plugins.find(name)
        if factory is not None:
            construction = of_factory(name, factory)(hint)
        else:
            construction = self._built_in(name, hint, options)
        made: _Model = construction.make(self._kind, options)
        return made

    def _built_in(self, name: str, hint: str | None, options: Mapping[str, Any]) -> Construction:
        row = self._rows.get(name)
        if row is None:
            known = self.names()
            raise UnknownProviderError(
                f"unknown {self._what} {quote(name)}{did_you_mean(name, known)} "
                f"Known: {', '.join(known)}"
            )
        if hint is not None and row.parameter is None:
            raise ConfigurationError(f"{name}: nothing follows it, write just {quote(name)}")
        module, _, target = row.target.partition(":")
        made_by = getattr(import_module(module), target)
        if hint is None and row.parameter is not None and row.parameter not in options:
            default = signature(made_by).parameters[row.parameter].default
            if default is Parameter.empty:
                raise ConfigurationError(
                    f"{name}: say which {row.parameter}, after a colon: '{name}:<{row.parameter}>'"
                )
        value = row.hint(name, hint)
        return Construction(
            name, made_by, parameter=row.parameter, hint=value, given=hint is not None
        )

    def register(self, name: str, factory: Callable[..., _Model]) -> Callable[[], None]:
        """Register a factory as `name`; return a function that unregisters it.

        Raises:
            ConfigurationError: The name is not valid in such a string.
        """
        return register(self._factories, checked_name(name, "a name"), factory)
