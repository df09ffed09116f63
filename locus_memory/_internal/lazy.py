"""Names of a package that are imported on first use (PEP 562)."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

__all__ = ["lazy_names"]


def lazy_names(
    package: str, where: Mapping[str, str], unlisted: Mapping[str, str] | None = None
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return the `__getattr__` and `__dir__` of a package whose names are in other modules.

    Args:
        package: The package's `__name__`; it has an `__all__`.
        where: The module that defines each name, relative to the package.
        unlisted: The same for names that are not in `__all__`: those that need a driver, which
            may not be installed, and those whose public place is another package.
    """
    bound = vars(sys.modules[package])
    known = {**where, **(unlisted or {})}

    def get(name: str) -> Any:
        if name not in known:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        bound[name] = value = getattr(import_module(f"{package}.{known[name]}"), name)
        return value

    def names() -> list[str]:
        return sorted(bound["__all__"])

    return get, names
