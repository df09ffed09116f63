"""Plugins: values that installed distributions offer by entry points, each under a name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

from locus_memory._internal.quoting import quote
from locus_memory.errors import ConfigurationError
from locus_memory.events import emit

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint, EntryPoints

__all__ = ["Plugins"]

_Kind = TypeVar("_Kind")


class Plugins(Generic[_Kind]):
    """The plugins of one group of entry points; each call looks them up again.

    Args:
        group: The group.
        kind: The class of the values.
        kind_name: Its name in messages.
    """

    def __init__(self, group: str, kind: type[_Kind], kind_name: str) -> None:
        self._group = group
        self._kind = kind
        self._kind_name = kind_name

    def find(self, name: str) -> _Kind | None:
        """Return the plugin of a name, or `None`.

        Raises:
            ConfigurationError: It does not load.
        """
        for entry in self._entries():
            if entry.name.lower() != name.lower():
                continue
            try:
                return self._loaded(entry)
            except Exception as error:
                raise ConfigurationError(
                    f"{name}: its plugin {quote(entry.value)} does not load: {type(error).__name__}"
                ) from error
        return None

    def all(self) -> dict[str, _Kind]:
        """Return all plugins by name; one that does not load is reported and left out."""
        found: dict[str, _Kind] = {}
        for entry in self._entries():
            try:
                found.setdefault(entry.name.lower(), self._loaded(entry))
            except Exception as error:  # noqa: BLE001 - whatever it raises, the others must work
                emit("registry.plugin_failed", error=error, provider=entry.name, plugin=entry.value)
        return found

    def names(self) -> set[str]:
        """Return the names of all plugins, without loading one."""
        return {entry.name.lower() for entry in self._entries()}

    def _entries(self) -> EntryPoints:
        from importlib.metadata import entry_points  # noqa: PLC0415 - costs 30 ms, seldom needed

        return entry_points(group=self._group)

    def _loaded(self, entry: EntryPoint) -> _Kind:
        loaded = entry.load()
        if not isinstance(loaded, self._kind):
            raise ConfigurationError(f"{quote(entry.value)} is not a {self._kind_name}")
        return loaded
