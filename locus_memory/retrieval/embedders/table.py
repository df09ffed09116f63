"""Tables of models: the name, the class and the extra of each model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from inspect import Parameter, signature
from typing import Any, Generic, TypeVar

from locus_memory._internal.providers.address import is_provider_name, parse_address
from locus_memory._internal.providers.construction import Construction, did_you_mean
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
    """

    target: str
    parameter: str | None = None


class ModelTable(Generic[_Model]):
    """A table from strings such as `"local"` or `"openai:text-embedding-3-small"` to models.

    Args:
        what: The kind of the models, for messages.
        kind: The protocol of the models.
        rows: The built-in models, by name.
    """

    def __init__(self, what: str, kind: type[Any], rows: Mapping[str, ModelRow]) -> None:
        self._what = what
        self._kind = kind
        self._rows = rows
        self._factories: dict[str, Callable[..., _Model]] = {}

    def names(self) -> list[str]:
        """Return the known names, in alphabetical order."""
        return sorted({*self._rows, *self._factories})

    def make(self, where: str, options: Mapping[str, Any]) -> _Model:
        """Return a new model.

        Raises:
            UnknownProviderError: The name is not registered.
            UnknownOptionError: Its class has no such option.
            ConfigurationError: An invalid string, or arguments that its class refuses.
        """
        address = parse_address(where)
        name, hint = address.provider, address.hint
        if name in self._factories:
            construction = Construction(name, self._factories[name], positional=(hint,))
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
        return Construction(
            name, made_by, parameter=row.parameter, hint=hint, given=hint is not None
        )

    def register(self, name: str, factory: Callable[..., _Model]) -> Callable[[], None]:
        """Register a factory as `name`; return a function that unregisters it.

        Raises:
            ConfigurationError: The name is not valid in such a string.
        """
        if not is_provider_name(name):
            raise ConfigurationError(f"a name is letters, digits and '_.+-', not {quote(name)}")
        key = name.lower()
        self._factories[key] = factory

        def unregister() -> None:
            if self._factories.get(key) is factory:
                del self._factories[key]

        return unregister
