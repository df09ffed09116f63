"""Calls of a provider's class with the options it accepts, and errors for other options."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Unpack, get_args, get_origin, get_type_hints

from locus_memory._internal.quoting import LONGEST, quote
from locus_memory.errors import ConfigurationError, UnknownOptionError

__all__ = [
    "Construction",
    "ConstructionFactory",
    "check_options",
    "did_you_mean",
    "known_options",
    "of_factory",
    "unknown_option",
]

_HINT = "config_hint"
"""The name of the hint in factories of the Locus SDK."""

_PLACED = {
    inspect.Parameter.POSITIONAL_ONLY,
    inspect.Parameter.POSITIONAL_OR_KEYWORD,
    inspect.Parameter.VAR_POSITIONAL,
}

_NAMED = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


@dataclass(frozen=True, slots=True)
class Construction:
    """How to create one object of a provider: a class or factory, with the hint's arguments."""

    provider: str
    target: Callable[..., Any]
    positional: tuple[str | None, ...] = ()
    named: Mapping[str, str | None] = field(default_factory=dict[str, str | None])
    parameter: str | None = None
    hint: str | int | None = None
    given: bool = False

    def make(self, kind: type[Any], options: Mapping[str, Any]) -> Any:
        """Return the object; the options must have been checked."""
        known = known_options(self.target)
        if known is not None:
            check_options(self.provider, options, known)
        made = self.target(*self.positional, **{**self.named, **self._filled(options)})
        if not isinstance(made, kind):
            raise ConfigurationError(
                f"{self.provider}: made a {type(made).__name__}, not a {kind.__name__}"
            )
        return made

    def takes(self, option: str) -> bool:
        """Whether it accepts the option."""
        known = known_options(self.target)
        return known is None or option in known

    def _filled(self, options: Mapping[str, Any]) -> dict[str, Any]:
        if self.parameter is None or self.hint is None:
            return dict(options)
        if self.parameter not in options:
            return {self.parameter: self.hint, **options}
        if self.given:
            raise ConfigurationError(
                f"{self.provider}: {self.parameter!r} is given twice, by the provider string "
                "and as an option"
            )
        return dict(options)


ConstructionFactory = Callable[[str | None], Construction]
"""Creates a `Construction` from a hint; `None`: none was given."""


def of_factory(provider: str, factory: Callable[..., Any]) -> ConstructionFactory:
    """Return a function from a hint to a `Construction`, for the caller's own factory.

    A factory with a parameter `config_hint`, or with nothing but `**options`, gets the hint by that
    name; any other gets it as its first argument, if it accepts one. Its signature is read here,
    once, so that a `TypeError` inside it never looks like a wrong call.
    """
    try:
        parameters = inspect.signature(factory).parameters.values()
    except (TypeError, ValueError):
        # Functions in C may have no signature.
        return lambda hint: Construction(provider, factory, positional=(hint,))
    kinds = {parameter.kind for parameter in parameters}
    if any(each.name == _HINT and each.kind in _NAMED for each in parameters):
        return lambda hint: Construction(provider, factory, named={_HINT: hint})
    if kinds & _PLACED:
        return lambda hint: Construction(provider, factory, positional=(hint,))
    takes_any = inspect.Parameter.VAR_KEYWORD in kinds
    return lambda hint: _without_place(provider, factory, hint, takes_any=takes_any)


def _without_place(
    provider: str, factory: Callable[..., Any], hint: str | None, *, takes_any: bool
) -> Construction:
    if hint is None:
        return Construction(provider, factory)
    if not takes_any:
        raise ConfigurationError(f"{provider}: takes no hint, write just {provider!r}")
    return Construction(provider, factory, named={_HINT: hint})


def known_options(target: Callable[..., Any]) -> set[str] | None:
    """Return the keyword names that a class or factory accepts; `None`: it accepts any.

    A class that passes `**options` to its parent also accepts those of its parent, or only those
    named by an `Unpack[...]` of a `TypedDict`.
    """
    known: set[str] = set()
    for each in _callables(target):
        parameters = list(inspect.signature(each).parameters.values())
        known.update(p.name for p in parameters if p.kind in _NAMED and p.name != "self")
        rest = [p.name for p in parameters if p.kind is inspect.Parameter.VAR_KEYWORD]
        unpacked = _unpacked(each, rest[0]) if rest else set[str]()
        if unpacked is not None:
            return known | unpacked
    return known if isinstance(target, type) else None


def _unpacked(target: Callable[..., Any], name: str) -> set[str] | None:
    """Return the keys of the `TypedDict` that `**name` is annotated with, if it is."""
    try:
        annotation = get_type_hints(target).get(name)
    except (NameError, TypeError):
        # Annotations of other packages may not be importable at run time.
        return None
    if get_origin(annotation) is not Unpack:
        return None
    (options,) = get_args(annotation)
    return set((get_origin(options) or options).__annotations__)


def _callables(target: Callable[..., Any]) -> list[Callable[..., Any]]:
    if not isinstance(target, type):
        return [target]
    parents = target.__mro__[:-1]
    return [vars(parent)["__init__"] for parent in parents if "__init__" in vars(parent)]


def check_options(owner: str, options: Iterable[str], known: Iterable[str]) -> None:
    """Refuse an option that is not known.

    Raises:
        UnknownOptionError: There is one.
    """
    for option in options:
        if option not in known:
            raise unknown_option(owner, option, known)


def unknown_option(provider: str, option: str, known: Iterable[str]) -> UnknownOptionError:
    """Return the error that names an unknown option and lists the known ones."""
    listed = sorted(known)
    return UnknownOptionError(
        f"{provider}: unknown option {quote(option)}{did_you_mean(option, listed)} "
        f"Known: {', '.join(listed) or 'none'}"
    )


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return the text after a wrong name: a full stop, or the nearest known name."""
    # A much longer name matches none, and takes seconds to compare.
    close = difflib.get_close_matches(name[:LONGEST], known, 1)
    return f": did you mean {close[0]!r}?" if close else "."
