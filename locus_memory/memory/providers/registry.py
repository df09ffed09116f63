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
| any string of a store, such as `sqlite:./agent.db` | an `LLMMemoryManager` over it |
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from inspect import Parameter, signature
from typing import Any, Final, NoReturn

from locus_memory._internal.providers.address import parse_address
from locus_memory._internal.providers.construction import (
    Construction,
    did_you_mean,
    known_options,
    of_factory,
    unknown_option,
)
from locus_memory._internal.providers.plugins import Plugins
from locus_memory._internal.quoting import quote
from locus_memory.errors import ConfigurationError, UnknownProviderError
from locus_memory.memory.base import BaseMemoryManager
from locus_memory.memory.manager import LLMMemoryManager
from locus_memory.memory.options import read_options
from locus_memory.memory.providers.base import is_provider
from locus_memory.memory.providers.descriptor import MemoryProvider, checked_name
from locus_memory.memory.providers.manager import ProviderManager
from locus_memory.presets import is_preset, read_preset
from locus_memory.registry import list_stores, resolve_address

__all__ = [
    "get_memory_manager",
    "list_memory_providers",
    "open_memory_manager",
    "register_memory_api",
    "register_memory_provider",
]

ENTRY_POINTS: Final = "locus_memory.memory_providers"
"""The entry point group of third-party memory providers."""

_plugins: Final = Plugins(ENTRY_POINTS, MemoryProvider, "MemoryProvider")
_HERE: Final = "locus_memory.memory.providers"


def _local(where: str | None = None, **options: Any) -> LLMMemoryManager:
    """Return the manager over a store of this library."""
    return _over_store(where or "sqlite", options)


def _trusting(where: str | None = None, **options: Any) -> LLMMemoryManager:
    """Return the manager that ranks by trust as well."""
    return _local(where, **{"blend": "trust", **options})


_APIS: Final[Mapping[str, str | Callable[..., Any]]] = {
    "local": _local,
    "holographic": _trusting,
    "hindsight": f"{_HERE}.hindsight:HindsightProvider",
    "mem0": f"{_HERE}.mem0:Mem0Provider",
}

_PROVIDERS: Final[Mapping[str, MemoryProvider]] = {
    each.id: each
    for each in (
        MemoryProvider("local", "A store of this library", "local"),
        MemoryProvider("holographic", "A store of this library, with trust", "holographic"),
        MemoryProvider("hindsight", "Hindsight", "hindsight"),
        MemoryProvider("mem0", "mem0", "mem0"),
    )
}

_apis: dict[str, Callable[..., Any]] = {}
_providers: dict[str, MemoryProvider] = {}


def get_memory_manager(where: str, **options: Any) -> BaseMemoryManager:
    """Return a new memory manager, which the caller closes.

    Args:
        where: `provider` or `provider:hint`, such as `"hindsight:support"`; or the string of a
            store, for an `LLMMemoryManager` over it.
        **options: Keyword arguments of the provider's class, and for a class that is not a
            manager also those of `ProviderManager`.

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
        preferred: Options for a class that accepts them.
    """
    if is_preset(where) and _find(read_preset(where).where) is not None:
        preset = read_preset(where)
        where, options = preset.where, {**preset.filled_options, **options}
    provider = _find(where)
    if provider is None:
        return _over_store(where, {**(preferred or {}), **options})
    target = _class_of(provider)
    accepted = _accepted(target)
    bridge = {name: options[name] for name in _BRIDGE & options.keys() - accepted}
    own = {name: value for name, value in options.items() if name not in bridge}
    suggested = {name: value for name, value in (preferred or {}).items() if name in accepted}
    configured = {**suggested, **provider.options.config}
    made = _made(provider.id, target, parse_address(where).hint, own, configured)
    if isinstance(made, BaseMemoryManager):
        for option in bridge:
            raise unknown_option(provider.id, option, accepted)
        return made
    if not is_provider(made):
        raise ConfigurationError(
            f"{provider.id}: made a {type(made).__name__}, which is no memory provider"
        )
    return ProviderManager(made, **bridge)


_BRIDGE: Final = frozenset(
    ("batch_quiet", "recall_timeout", "hook_timeout", "max_prompt_chars"),
)
"""The options of `ProviderManager`."""


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
    key = checked_name(name)
    if not callable(cls):
        raise ConfigurationError(f"a memory API is a class, not {quote(cls)}")
    return _registered(_apis, key, cls)


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
    return _registered(_providers, descriptor.id, descriptor)


def list_memory_providers() -> list[str]:
    """Return the ids of the memory providers, in alphabetical order; stores are not among them."""
    return sorted({*_plugins.all(), *_PROVIDERS, *_providers})


def _registered(table: dict[str, Any], key: str, row: Any) -> Callable[[], None]:
    table[key] = row

    def unregister() -> None:
        if table.get(key) is row:
            del table[key]

    return unregister


def _find(where: str) -> MemoryProvider | None:
    """Return the memory provider that a string names; `None`: it names a store.

    Raises:
        UnknownProviderError: It names neither.
        ConfigurationError: It is not a provider string, or its plugin does not load.
    """
    name = str(where).partition(":")[0].lower()
    found = _providers.get(name) or _PROVIDERS.get(name)
    if found is not None:
        return found
    try:
        resolve_address(where)
    except UnknownProviderError:
        # Looked for last: this reads the metadata of all installed distributions.
        return _plugins.find(parse_address(where).provider) or _refuse(where)
    return None


def _refuse(where: str) -> NoReturn:
    name, known = parse_address(where).provider, sorted({*list_memory_providers(), *list_stores()})
    raise UnknownProviderError(
        f"unknown memory provider {quote(name)}{did_you_mean(name, known)}"
        f" Known: {', '.join(known)}"
    )


def _over_store(where: str, options: Mapping[str, Any]) -> LLMMemoryManager:
    address, _ = resolve_address(where)
    options, accepted = read_options(options), _accepted(_local)
    for option in options:
        if option not in accepted:
            raise unknown_option(address.provider, option, accepted)
    return LLMMemoryManager(where, **options)


def _class_of(provider: MemoryProvider) -> Callable[..., Any]:
    found = _apis.get(provider.api.lower()) or _APIS.get(provider.api.lower()) or provider.api
    if not isinstance(found, str):
        return found
    module, colon, name = found.partition(":")
    if not colon:
        known = sorted({*_apis, *_APIS})
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
    configured: Mapping[str, Any],
) -> Any:
    """Call a class with the hint as its first argument, and with the options it accepts."""
    given = {**configured, **options}
    first = next((each for each in signature(target).parameters.values() if _is_placed(each)), None)
    if hint is None and (first is None or first.default is not first.empty or first.name in given):
        return Construction(name, target).make(object, given)
    if hint is not None and first is not None:
        if first.name in options:
            raise ConfigurationError(
                f"{name}: {first.name!r} is given twice, by the provider string and as an option"
            )
        given.pop(first.name, None)
    return of_factory(name, target)(hint).make(object, given)


def _is_placed(parameter: Parameter) -> bool:
    return parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)


def _accepted(target: Callable[..., Any]) -> set[str]:
    """Return the options that a class is known to accept."""
    if target in (_local, _trusting):
        return (known_options(LLMMemoryManager) or set()) - {"store"}
    return known_options(target) or set()
