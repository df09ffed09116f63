"""Calling a provider's class with the options it knows, and naming those it does not."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Unpack, get_args, get_origin, get_type_hints

from locus_memory.errors import ConfigurationError, UnknownOptionError
from locus_memory.quoting import LONGEST, quote

__all__ = ["Maker", "did_you_mean", "known_options", "unknown_option"]

_NAMED = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


@dataclass(frozen=True, slots=True)
class Maker:
    """How to make one object of a provider: a class or factory and what the hint gives it."""

    provider: str
    target: Callable[..., Any]
    positional: tuple[str | None, ...] = ()
    parameter: str | None = None
    hint: str | None = None
    given: bool = False

    def make(self, kind: type[Any], options: Mapping[str, Any]) -> Any:
        """Return the object, once the options are known to be known."""
        known = known_options(self.target)
        for option in options:
            if known is not None and option not in known:
                raise unknown_option(self.provider, option, known)
        made = self.target(*self.positional, **self._filled(options))
        if not isinstance(made, kind):
            raise ConfigurationError(
                f"{self.provider}: made a {type(made).__name__}, not a {kind.__name__}"
            )
        return made

    def takes(self, option: str) -> bool:
        """Whether it has the option."""
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


def known_options(target: Callable[..., Any]) -> set[str] | None:
    """Return the keyword names that a class or factory takes; `None`: it takes any.

    A class that hands `**options` to its parent knows its parent's as well, or just those
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
        # Somebody else's annotations need not be there at run time.
        return None
    if get_origin(annotation) is not Unpack:
        return None
    return set(get_args(annotation)[0].__annotations__)


def _callables(target: Callable[..., Any]) -> list[Callable[..., Any]]:
    if not isinstance(target, type):
        return [target]
    parents = target.__mro__[:-1]
    return [vars(parent)["__init__"] for parent in parents if "__init__" in vars(parent)]


def unknown_option(provider: str, option: str, known: Iterable[str]) -> UnknownOptionError:
    """Return the error that names an option nobody takes and lists those there are."""
    listed = sorted(known)
    return UnknownOptionError(
        f"{provider}: unknown option {quote(option)}{did_you_mean(option, listed)} "
        f"Known: {', '.join(listed) or 'none'}"
    )


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return what to put after a wrong name: a full stop, or the nearest right one."""
    # What is much longer is none of them, and takes seconds to compare.
    close = difflib.get_close_matches(name[:LONGEST], known, 1)
    return f": did you mean {close[0]!r}?" if close else "."
