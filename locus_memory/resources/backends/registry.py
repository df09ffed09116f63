"""Memory backends by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Final, TypeVar

from locus_memory._internal.providers.address import is_provider_name
from locus_memory._internal.quoting import quote
from locus_memory.errors import ConfigurationError, MemoryBackendNotFound
from locus_memory.resources.backends.base import MemoryBackend

__all__ = [
    "current",
    "get",
    "get_class",
    "is_available",
    "list_names",
    "preferred",
    "register",
    "set_default",
]

_Class = TypeVar("_Class", bound=type[MemoryBackend])

_BUILT_IN: Final = {"local": "locus_memory.resources.backends.local"}
"""The modules of the built-in backends, which register themselves when they are imported."""

_classes: dict[str, type[MemoryBackend]] = {}
_default: list[str] = ["local"]


def register(name: str) -> Callable[[_Class], _Class]:
    """Register a class of backends under a name; another one of the name is replaced.

    Raises:
        ConfigurationError: The name is not valid, or it is not a class of backends.
    """
    if not is_provider_name(name):
        raise ConfigurationError(
            f"a backend's name is letters, digits and '_.+-', not {quote(name)}"
        )

    def registered(cls: _Class) -> _Class:
        if not issubclass(cls, MemoryBackend):  # pyright: ignore[reportUnnecessaryIsInstance] - user input
            raise ConfigurationError(f"{quote(cls)} is not a class of memory backends")
        cls.name = name
        _classes[name] = cls
        return cls

    return registered


def list_names() -> list[str]:
    """Return the names of the backends, in the order of their registration; `local` is first."""
    return list(dict.fromkeys([*_BUILT_IN, *_classes]))


def get_class(name: str) -> type[MemoryBackend]:
    """Return the class of a backend.

    Raises:
        MemoryBackendNotFound: No backend has this name.
    """
    if name not in _classes and name in _BUILT_IN:
        import_module(_BUILT_IN[name])
    try:
        return _classes[name]
    except (KeyError, TypeError):
        raise MemoryBackendNotFound(str(name), _available()) from None


def get(name: str) -> MemoryBackend:
    """Return a new backend.

    Raises:
        MemoryBackendNotFound: No backend has this name.
    """
    return get_class(name)()


def is_available(name: str) -> bool:
    """Whether there is a backend of this name, and it can be used here; it never raises."""
    try:
        return bool(get_class(name).is_available())
    except Exception:  # noqa: BLE001 - whatever it raises, it cannot be used
        return False


def preferred(names: Iterable[str]) -> MemoryBackend:
    """Return a new backend: the first of these that is available.

    Raises:
        MemoryBackendNotFound: None is.
        ConfigurationError: The names are no list.
    """
    if isinstance(names, str):
        raise ConfigurationError("the names of backends are a list, also a single one")
    wanted = list(names)
    for name in wanted:
        if is_available(name):
            return get(name)
    raise MemoryBackendNotFound(", ".join(map(str, wanted)), _available())


def set_default(name: str) -> None:
    """Let `current` return this backend.

    Raises:
        MemoryBackendNotFound: No backend has this name.
    """
    get_class(name)
    _default[:] = [name]


def current() -> MemoryBackend:
    """Return a new backend of the default name, `local` out of the box."""
    return get(_default[0])


def _available() -> tuple[str, ...]:
    return tuple(name for name in list_names() if is_available(name))
