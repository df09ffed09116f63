"""The options of a constructor: values that group them, and checks of their types."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from functools import wraps
from numbers import Integral, Real
from typing import Any, Final, NamedTuple, TypeVar, cast

from locus_memory._internal.quoting import quote
from locus_memory.errors import ConfigurationError

__all__ = ["Keywords", "check_fields", "check_ranges", "checked", "with_profile"]

_Init = TypeVar("_Init", bound=Callable[..., None])
_Value = TypeVar("_Value")

_UNPACKED: Final = re.compile(r"Unpack\[(\w+)")
"""The annotation of `**keywords` that are those of a `TypedDict`."""


class Keywords:
    """The options passed to a constructor by name, beside the values that group them.

    A constructor with many options accepts them in frozen values, such as `RecallOptions`, and also
    each option by its own name: `**keywords: Unpack[...]` of a `TypedDict` with the fields of those
    values.

    Args:
        owner: The object to construct.
        given: The keywords.
    """

    def __init__(self, owner: object, given: Mapping[str, object]) -> None:
        self._owner = type(owner).__name__
        self.rest = dict[str, Any](given)
        """The keywords that are not in any of the values yet."""

    def into(self, kind: type[_Value], **parameter: _Value | None) -> _Value:
        """Return the value of one group of options: the caller's, or a new one from the keywords.

        Args:
            kind: The frozen dataclass of the group.
            parameter: The parameter for such a value, with the caller's argument.

        Raises:
            ConfigurationError: It has another type, or an option is also given by name.
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
        """Return the value of the only group, as `into` does; every keyword is a field of it.

        Raises:
            ConfigurationError: See `into`.
            TypeError: See `refuse_rest`.
        """
        value = self.into(kind, **parameter)
        self.refuse_rest()
        return value

    def refuse_rest(self) -> None:
        """Refuse keywords that are not in any of the values.

        Raises:
            TypeError: There is one; Python raises the same for an unknown keyword.
        """
        for name in self.rest:
            raise TypeError(f"{self._owner}.__init__() got an unexpected keyword argument {name!r}")


def with_profile(
    given: Mapping[str, Any], profiles: Mapping[str, Mapping[str, Any]]
) -> dict[str, Any]:
    """Return options with those of the profile that `options=` names; other options win.

    Raises:
        ConfigurationError: There is no such profile.
    """
    name = given.get("options")
    if not isinstance(name, str):
        return dict(given)
    if name not in profiles:
        raise ConfigurationError(f"options= is one of {', '.join(profiles)}, not {quote(name)}")
    return {**profiles[name], **{each: given[each] for each in given if each != "options"}}


class _Kind(NamedTuple):
    wanted: str
    takes: Callable[[Any], bool]
    shows: bool = True
    """Whether a message may quote what was given; a URL may hold a password."""


def _is_number(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, Real):
        return False
    try:
        return not math.isnan(value)
    except OverflowError:
        return False


# By the text of an annotation; a parameter with another annotation is not checked.
_KINDS: Final = {
    "Callable[[], float]": _Kind("a function", callable),
    "bool": _Kind("True or False", lambda value: isinstance(value, bool)),
    "float": _Kind("a number", _is_number),
    "int": _Kind(
        "an integer", lambda value: isinstance(value, Integral) and not isinstance(value, bool)
    ),
    "str": _Kind("a string", lambda value: isinstance(value, str), shows=False),
    "str | os.PathLike[str]": _Kind(
        "a path", lambda value: isinstance(value, str | os.PathLike), shows=False
    ),
}


def checked(init: _Init) -> _Init:
    """Return a constructor that refuses arguments of another type than their annotation.

    Only plain types are checked, such as `float | None`, also those in the `TypedDict` of
    `**keywords: Unpack[...]`; the constructor itself checks ranges. The constructor raises
    `ConfigurationError`, which names the option, its type and the given value.
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
    """Check the types of the fields of a dataclass against their annotations, as in `checked`.

    Raises:
        ConfigurationError: A field has another type.
    """
    for field in fields(value):
        kind, given = _kind(str(field.type)), getattr(value, field.name)
        if kind is not None and not kind.takes(given):
            raise _refusal(type(value).__name__, field.name, kind, given)


def check_ranges(
    owner: str,
    options: Any,
    least: Mapping[str, int],
    *,
    positive: Iterable[str] = (),
    one_of: Mapping[str, Sequence[object]] | None = None,
) -> None:
    """Check the numbers of an object, of which `None` is none, and its choices.

    Args:
        owner: What messages begin with.
        options: The object.
        least: The smallest number that each attribute may be.
        positive: The attributes that have to be above 0.
        one_of: The values that each attribute may have.

    Raises:
        ConfigurationError: A number is too small, or a value is not among those.
    """
    for name, known in (one_of or {}).items():
        if (given := getattr(options, name)) not in known:
            shown = ", ".join(map(repr, known))
            raise ConfigurationError(f"{owner}: {name} is one of {shown}, not {quote(given)}")
    rows = [(name, f"at least {bound}", bound, False) for name, bound in least.items()]
    for name, wanted, bound, is_open in (*rows, *((name, "above 0", 0, True) for name in positive)):
        given = getattr(options, name)
        if given is not None and (given < bound or (is_open and given == bound)):
            shown = quote(given) if isinstance(given, int) else f"{given:g}"
            raise ConfigurationError(f"{owner}: {name} is {wanted}, not {shown}")


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
