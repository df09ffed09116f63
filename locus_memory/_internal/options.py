"""The options of a constructor: the values that group them, and refusing a wrong type at once."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import wraps
from numbers import Integral, Real
from typing import Any, Final, NamedTuple, TypeVar, cast

from locus_memory._internal.quoting import quote
from locus_memory.errors import ConfigurationError

__all__ = ["Keywords", "check_fields", "checked"]

_Init = TypeVar("_Init", bound=Callable[..., None])
_Value = TypeVar("_Value")

_UNPACKED: Final = re.compile(r"Unpack\[(\w+)")
"""The annotation of `**keywords` that are those of a `TypedDict`."""


class Keywords:
    """The options that a constructor is given by name, beside the values that group them.

    A constructor of many options takes them in frozen values, such as `RecallOptions`, and each
    option by its own name as well: `**keywords: Unpack[...]`, of a `TypedDict` with the fields of
    those values.

    Args:
        owner: What is constructed.
        given: The keywords.
    """

    def __init__(self, owner: object, given: Mapping[str, object]) -> None:
        self._owner = type(owner).__name__
        self.rest = dict[str, Any](given)
        """The keywords that are in none of the values yet."""

    def into(self, kind: type[_Value], **parameter: _Value | None) -> _Value:
        """Return the value of one group of options: the caller's, or one of the keywords.

        Args:
            kind: Its frozen dataclass.
            parameter: The parameter that takes such a value, and what the caller gave for it.

        Raises:
            ConfigurationError: It is of another kind, or an option is given by name as well.
        """
        ((name, value),) = parameter.items()
        group: Any = kind
        known = [field.name for field in fields(group)]
        given = {each: self.rest.pop(each) for each in known if each in self.rest}
        if value is None:
            return kind(**given)
        if not isinstance(value, kind):
            raise ConfigurationError(
                f"{self._owner}: {name} is {kind.__name__}(...) or None, not {_type_of(value)}"
            )
        if given:
            raise ConfigurationError(
                f"{self._owner}: {min(given)!r} is given twice, by name and within "
                f"{name}={kind.__name__}(...)"
            )
        return value

    def all_into(self, kind: type[_Value], **parameter: _Value | None) -> _Value:
        """Return the value of the only group, as `into`; every keyword is a field of it.

        Raises:
            ConfigurationError: See `into`.
            TypeError: See `refuse_rest`.
        """
        value = self.into(kind, **parameter)
        self.refuse_rest()
        return value

    def refuse_rest(self) -> None:
        """Refuse keywords that are in none of the values.

        Raises:
            TypeError: There are some; as Python has it for a keyword that nobody knows.
        """
        for name in self.rest:
            raise TypeError(f"{self._owner}.__init__() got an unexpected keyword argument {name!r}")


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

    Only plain types are looked at, such as `float | None`, and so are those of the `TypedDict`
    of `**keywords: Unpack[...]`; ranges are the constructor's own affair. The constructor raises
    `ConfigurationError`, which names the option, its type and what was given.
    """
    kinds = {name: _kind(str(text)) for name, text in _annotations(init).items()}
    places = init.__code__.co_varnames[1 : init.__code__.co_argcount]

    @wraps(init)
    def constructor(self: Any, *args: Any, **options: Any) -> None:
        for name, value in {**dict(zip(places, args, strict=False)), **options}.items():
            kind = kinds.get(name)
            if kind is not None and not kind.takes(value):
                raise _refusal(type(self).__name__, name, kind, value)
        init(self, *args, **options)

    return cast("_Init", constructor)


def check_fields(value: Any) -> None:
    """Check that the fields of a dataclass are of the types they are annotated with, as `checked`.

    Raises:
        ConfigurationError: One is not.
    """
    for field in fields(value):
        kind, given = _kind(str(field.type)), getattr(value, field.name)
        if kind is not None and not kind.takes(given):
            raise _refusal(type(value).__name__, field.name, kind, given)


def _annotations(init: Callable[..., None]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, text in init.__annotations__.items():
        unpacked = _UNPACKED.match(str(text))
        if unpacked is None:
            found[name] = text
            continue
        for key, reference in init.__globals__[unpacked[1]].__annotations__.items():
            found[key] = getattr(reference, "__forward_arg__", reference)
    return found


def _kind(text: str) -> _Kind | None:
    plain = _KINDS.get(text.removesuffix(" | None"))
    if plain is None or not text.endswith(" | None"):
        return plain
    return _Kind(
        f"{plain.wanted} or None", lambda value: value is None or plain.takes(value), plain.shows
    )


def _type_of(value: object) -> str:
    return type(value).__name__


def _refusal(owner: str, name: str, kind: _Kind, value: object) -> ConfigurationError:
    given = _type_of(value)
    if kind.shows and value is not None:
        given = f"the {given} {quote(value)}"
    return ConfigurationError(f"{owner}: {name} is {kind.wanted}, not {given}")
