"""Memory providers by name: from a string to a memory manager.

A string is `provider` or `provider:hint`, as for a store. Two tables say what it means. An *API* is
a class: a memory provider or a memory manager. A *provider* is an API with a name and a
configuration. `register_memory_api` and `register_memory_provider` add rows, and so does an
installed distribution: an entry point of the group `locus_memory.memory_providers`, whose name is
the provider and whose value is a `MemoryProvider`.

| string | meaning |
|---|---|
| `local`, `local:sqlite:./agent.db` | an `LLMMemoryManager` over a store, `sqlite` by default |
| `holographic`, `holographic:./facts.db` | the same, ranked with the trust in each fact |
| `hindsight`, `hindsight:bank` | a bank of a Hindsight server |
| `mem0` | the mem0 platform |
| `supermemory` | Supermemory |
| any string of a store, such as `sqlite:./agent.db` | an `LLMMemoryManager` over it |
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from inspect import Parameter, signature
from typing import Any, Final

from locus_memory._internal.providers.address import parse_address
from locus_memory._internal.providers.construction import (
    Construction,
    did_you_mean,
    of_factory,
)
from locus_memory._internal.providers.names import checked_name, register
from locus_memory._internal.providers.plugins import Plugins
from locus_memory._internal.quoting import quote
from locus_memory.errors import ConfigurationError, UnknownProviderError
from locus_memory.memory.base import BaseMemoryManager
from locus_memory.memory.manager import LLMMemoryManager
from locus_memory.memory.options import read_options
from locus_memory.memory.providers.manager import ProviderManager
from locus_memory.presets import is_preset, read_preset
from locus_memory.registry import list_stores, resolve_address

__all__ = [
    "MemoryOptions",
    "MemoryProvider",
    "get_memory_manager",
    "list_memory_providers",
    "open_memory_manager",
    "register_memory_api",
    "register_memory_provider",
]

ENTRY_POINTS: Final = "locus_memory.memory_providers"
"""The entry point group of third-party memory providers."""

_NAME: Final = "a memory provider's name"


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryOptions:
    """The options of a memory provider.

    Attributes:
        config: Keyword arguments of the API's class; those of a call take precedence. The repr
            does not show them: one may be a key.
    """

    config: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False)


@dataclass(frozen=True, slots=True)
class MemoryProvider:
    """The descriptor of a memory provider.

    Attributes:
        id: The first word of its strings.
        name: Its name for people.
        api: The name of a registered API, or its class as `"module:Class"`.
        options: The options that it passes to the class.

    Raises:
        ConfigurationError: The id is not valid in a provider string.
    """

    id: str
    name: str
    api: str
    options: MemoryOptions = field(default_factory=MemoryOptions)

    def __post_init__(self) -> None:
        object.__setattr__(self, "id", checked_name(self.id, _NAME))


_plugins: Final = Plugins(ENTRY_POINTS, MemoryProvider, "MemoryProvider")
_HERE: Final = "locus_memory.memory.providers"

_apis: Final[ChainMap[str, str | Callable[..., Any]]] = ChainMap(
    {},
    {
        "local": LLMMemoryManager,
        "hindsight": f"{_HERE}.hindsight:HindsightProvider",
        "mem0": f"{_HERE}.mem0:Mem0Provider",
        "supermemory": f"{_HERE}.supermemory:SupermemoryProvider",
    },
)

_STORE: Final = MemoryProvider("store", "A store of this library", "local")
"""What the string of a store stands for."""

_TRUST: Final = MemoryOptions(config={"store": "sqlite", "blend": "trust"})
_BUILT_IN: Final = (
    MemoryProvider("local", _STORE.name, "local", MemoryOptions(config={"store": "sqlite"})),
    MemoryProvider("holographic", "A store of this library, with trust", "local", _TRUST),
    MemoryProvider("hindsight", "Hindsight", "hindsight"),
    MemoryProvider("mem0", "mem0", "mem0"),
    MemoryProvider("supermemory", "Supermemory", "supermemory"),
)
_providers: Final[ChainMap[str, MemoryProvider]] = ChainMap({}, {row.id: row for row in _BUILT_IN})


def get_memory_manager(where: str, **options: Any) -> BaseMemoryManager:
    """Return a new memory manager, which the caller closes.

    Args:
        where: `provider` or `provider:hint`, such as `"hindsight:support"`; or the string of a
            store, for an `LLMMemoryManager` over it.
        **options: Keyword arguments of the provider's class.

    Raises:
        UnknownProviderError: The provider is not registered.
        UnknownOptionError: The class has no such option.
        MissingDriverError: A package that it needs is not installed.
        ConfigurationError: An invalid string, or a key that is missing.
    """
    return open_memory_manager(where, options)


def open_memory_manager(
    where: str, options: Mapping[str, Any], *, preferred: Mapping[str, Any] | None = None
) -> BaseMemoryManager:
    """Return a new memory manager; as `get_memory_manager`.

    Args:
        where: As there.
        options: As there.
        preferred: Options for an `LLMMemoryManager`, which all others outrank.
    """
    if is_preset(where) and _find(read_preset(where).where) is not _STORE:
        preset = read_preset(where)
        where, options = preset.where, {**preset.filled_options, **options}
    provider = _find(where)
    hint = where if provider is _STORE else parse_address(where).hint
    target = _class_of(provider)
    configured = dict(provider.options.config)
    if isinstance(target, type) and issubclass(target, LLMMemoryManager):
        configured = {**(preferred or {}), **configured}
        options = read_options(options)
    made = _made(provider.id, target, hint, options, configured)
    return made if isinstance(made, BaseMemoryManager) else ProviderManager(made)


def register_memory_api(name: str, cls: Callable[..., Any]) -> Callable[[], None]:
    """Register a class of memory providers or memory managers.

    Args:
        name: The name, for the `api` of a `MemoryProvider`.
        cls: The class, or a function; called with the hint as for `register_store`, and with the
            options.

    Returns:
        A function that unregisters it.

    Raises:
        ConfigurationError: The name is not valid, or `cls` cannot be called.
    """
    if not callable(cls):
        raise ConfigurationError(f"a memory API is a class, not {quote(cls)}")
    return register(_apis.maps[0], checked_name(name, _NAME), cls)


def register_memory_provider(descriptor: MemoryProvider) -> Callable[[], None]:
    """Register a memory provider under its id; it takes precedence over a built-in one.

    Returns:
        A function that unregisters it.

    Raises:
        ConfigurationError: It is not a descriptor.
    """
    if not isinstance(descriptor, MemoryProvider):
        raise ConfigurationError(
            f"a memory provider is a MemoryProvider, not {type(descriptor).__name__}"
        )
    return register(_providers.maps[0], descriptor.id, descriptor)


def list_memory_providers() -> list[str]:
    """Return the ids of the memory providers, in alphabetical order; stores are not among them."""
    return sorted({*_plugins.all(), *_providers})


def _find(where: str) -> MemoryProvider:
    """Return the memory provider that a string names; `_STORE`: it names a store.

    Raises:
        UnknownProviderError: It names neither.
        ConfigurationError: It is not a provider string, or its plugin does not load.
    """
    found = _providers.get(str(where).partition(":")[0].lower())
    if found is not None:
        return found
    try:
        resolve_address(where)
    except UnknownProviderError:
        # Looked for last: this reads the metadata of all installed distributions.
        name = parse_address(where).provider
        found = _plugins.find(name)
        if found is None:
            known = sorted({*list_memory_providers(), *list_stores()})
            raise UnknownProviderError(
                f"unknown memory provider {quote(name)}{did_you_mean(name, known)}"
                f" Known: {', '.join(known)}"
            ) from None
        return found
    return _STORE


def _class_of(provider: MemoryProvider) -> Callable[..., Any]:
    found = _apis.get(provider.api.lower(), provider.api)
    if not isinstance(found, str):
        return found
    module, colon, name = found.partition(":")
    if not colon:
        known = sorted(_apis)
        raise ConfigurationError(
            f"{provider.id}: no memory API {quote(found)}{did_you_mean(found, known)} Known:"
            f" {', '.join(known)}"
        )
    loaded: Callable[..., Any] = getattr(import_module(module), name)
    return loaded


def _made(
    name: str,
    target: Callable[..., Any],
    hint: str | None,
    options: Mapping[str, Any],
    configured: dict[str, Any],
) -> Any:
    """Call a class with the hint as its first argument, and with the options it accepts."""
    first = next(iter(signature(target).parameters.values()), None)
    if first is None or first.kind is not Parameter.POSITIONAL_OR_KEYWORD:
        return of_factory(name, target)(hint).make(object, {**configured, **options})
    if hint is not None:
        configured.pop(first.name, None)
    elif first.default is first.empty:
        configured.setdefault(first.name, None)
    made = Construction(name, target, parameter=first.name, hint=hint, given=True)
    return made.make(object, {**configured, **options})
