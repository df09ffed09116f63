"""Names of a package that are imported on first use (PEP 562), and patterns compiled likewise."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from typing import Any, Final, cast

__all__ = ["compiled_later", "lazy_names"]

_ROOT: Final = "locus_memory."

_METHODS: Final = (
    *("search", "match", "fullmatch", "finditer", "findall", "split", "sub", "subn"),
    *("pattern", "flags", "groups", "groupindex"),
)


def lazy_names(
    package: str, where: Mapping[str, str], unlisted: Mapping[str, str] | None = None
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return the `__getattr__` and `__dir__` of a package whose names are in other modules.

    Args:
        package: The package's `__name__`; it has an `__all__`.
        where: The module that defines each name, relative to the package, or from `locus_memory.`
            on.
        unlisted: The same for names that are not in `__all__`: those that need a driver, which
            may not be installed, and those whose public place is another package.
    """
    bound = vars(sys.modules[package])
    known = {**where, **(unlisted or {})}

    def get(name: str) -> Any:
        if name not in known:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        where = known[name]
        module = where if where.startswith(_ROOT) else f"{package}.{where}"
        bound[name] = value = getattr(import_module(module), name)
        return value

    def names() -> list[str]:
        return sorted(bound["__all__"])

    return get, names


class _Later:
    """Compiles at the first use of an attribute, and then has those of the pattern itself."""

    def __init__(self, make: Callable[..., re.Pattern[str]], *arguments: Any) -> None:
        self._make = partial(make, *arguments)

    def __getattr__(self, name: str) -> Any:
        if name not in _METHODS:
            raise AttributeError(f"a pattern that is compiled later has no {name!r}")
        compiled = self._make()
        vars(self).update({each: getattr(compiled, each) for each in _METHODS})
        return vars(self)[name]

    def __repr__(self) -> str:
        return f"compiled_later({self.pattern!r})"


def compiled_later(make: Callable[..., re.Pattern[str]], *arguments: Any) -> re.Pattern[str]:
    """Return an object with the methods of the pattern, which is made at the first use.

    A table of rules has a hundred patterns, and most processes use none. The object is no
    `re.Pattern`: the functions of the module `re` do not take it.

    Args:
        make: Compiles the pattern, as `re.compile` does. Several threads may call it at the same
            time.
        *arguments: Its arguments.
    """
    return cast("re.Pattern[str]", _Later(make, *arguments))
