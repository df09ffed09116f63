"""Refusing options of a wrong type as soon as something is made with them."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import wraps
from numbers import Integral, Real
from typing import Any, Final, NamedTuple, TypeVar, cast

from locus_memory._internal.quoting import quote
from locus_memory.errors import ConfigurationError

__all__ = ["checked"]

_Init = TypeVar("_Init", bound=Callable[..., None])


class _Kind(NamedTuple):
    wanted: str
    takes: Callable[[Any], bool]
    shows: bool = True
    """Whether a message may quote what was given; a URL may hold a password."""


def _is_number(value: Any) -> bool:
    # What is not equal to itself is NaN.
    is_real = isinstance(value, Real) and not isinstance(value, bool)
    return is_real and bool(value == value)  # noqa: PLR0124 - as said


def _is_integer(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


# By the text of an annotation; a parameter that is annotated otherwise is not looked at.
_KINDS: Final = {
    "Callable[[], float]": _Kind("a function", callable),
    "bool": _Kind("True or False", lambda value: isinstance(value, bool)),
    "float": _Kind("a number", _is_number),
    "int": _Kind("an integer", _is_integer),
    "str": _Kind("a string", lambda value: isinstance(value, str), shows=False),
    "str | os.PathLike[str]": _Kind(
        "a path", lambda value: isinstance(value, str | os.PathLike), shows=False
    ),
}


def checked(init: _Init) -> _Init:
    """Return a constructor that refuses arguments that are not of the type it is annotated with.

    Only plain types are looked at, such as `float | None`; ranges are the constructor's own
    affair. The constructor raises `ConfigurationError`, which names the option, its type and
    what was given.
    """
    kinds = {name: _kind(str(text)) for name, text in init.__annotations__.items()}
    places = init.__code__.co_varnames[1 : init.__code__.co_argcount]

    @wraps(init)
    def constructor(self: Any, *args: Any, **options: Any) -> None:
        for name, value in {**dict(zip(places, args, strict=False)), **options}.items():
            kind = kinds.get(name)
            if kind is not None and not kind.takes(value):
                raise _refusal(type(self).__name__, name, kind, value)
        init(self, *args, **options)

    return cast("_Init", constructor)


def _kind(text: str) -> _Kind | None:
    plain = _KINDS.get(text.removesuffix(" | None"))
    if plain is None or not text.endswith(" | None"):
        return plain
    return _Kind(
        f"{plain.wanted} or None", lambda value: value is None or plain.takes(value), plain.shows
    )


def _refusal(owner: str, name: str, kind: _Kind, value: object) -> ConfigurationError:
    given = type(value).__name__
    if kind.shows and value is not None:
        given = f"the {given} {quote(value)}"
    return ConfigurationError(f"{owner}: {name} is {kind.wanted}, not {given}")
