"""Tables of models: a name, the class behind it, and the extra that it needs."""

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
    """One row.

    Attributes:
        target: A class or function as `"module:name"`.
        parameter: The parameter that the part after the colon fills; `None`: there is none.
    """

    target: str
    parameter: str | None = None


class ModelTable(Generic[_Model]):
    """From strings such as `"local"` or `"openai:text-embedding-3-small"` to models.

    Args:
        what: What the models are, for errors.
        kind: The protocol that they follow.
        rows: The built-in ones, by name.
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
            UnknownProviderError: Nobody knows the name.
            UnknownOptionError: Its class has no such option.
            ConfigurationError: A bad string, or whatever else its class refuses.
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
        """Let `name` mean what the factory makes; returns a function that takes it back.

        Raises:
            ConfigurationError: The name cannot stand in such a string.
        """
        if not is_provider_name(name):
            raise ConfigurationError(f"a name is letters, digits and '_.+-', not {quote(name)}")
        key = name.lower()
        self._factories[key] = factory

        def unregister() -> None:
            if self._factories.get(key) is factory:
                del self._factories[key]

        return unregister
