"""Provider strings: from a string to a store, a checkpointer or a backend.

A provider string is `provider`, `provider:hint` or a plain URL, whose whole text is then the
hint. `locus_memory.backends.providers` is the one table of providers; the code of a provider is
imported on first use. `register_store` and `register_checkpointer` add others. So does an
installed distribution with an entry point of the group `locus_memory.backends` whose name is the
provider and whose value is a `Provider`.

| string | meaning |
|---|---|
| `memory` | this process |
| `file`, `file:./dir`, `file:///abs/dir` | a folder, `./checkpoints` by default; checkpoints only |
| `sqlite`, `sqlite:./agent.db`, `sqlite:///abs/agent.db` | a file, `./locus.db` by default |
| `./agent.db`, `agent.db`, `/abs/agent.sqlite` | SQLite: a path that begins with `./`, or ends so |
| `sqlite::memory:` | SQLite without a file |
| `postgresql`, `postgresql:mydb` | a database; the rest from libpq's environment variables |
| `postgresql:postgresql://...`, `postgres://...` | a database by its URL |
| `redis`, `redis:host:6379`, `redis:host:6379/1` | a server, `localhost:6379` by default |
| `redis:rediss://...`, `redis:unix://...`, `redis://...`, `valkey://...` | a server by its URL |
| `redis+cluster://host1:port,host2:port` | a Redis Cluster, by some of its servers |
| `redis+sentinel://host1:port,host2:port/service` | the primary of a service, by its sentinels |
| `opensearch`, `opensearch:host:9200` | a cluster, `localhost:9200` by default |
| `opensearch:https://user:password@host`, `opensearch:host1,host2` | a cluster by its nodes |
| `oci:bucket`, `oci:bucket/namespace`, `oci://bucket@namespace` | a bucket of OCI Object Storage |
| `@name` | a preset of `pyproject.toml` or of the configuration file; see `locus_memory.presets` |
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from importlib import import_module
from typing import Any, Final, overload

from locus_memory._internal.options import with_profile
from locus_memory._internal.providers.address import (
    Address,
    check_below_root,
    is_path,
    parse_address,
    path_of_url,
)
from locus_memory._internal.providers.construction import (
    Construction,
    ConstructionFactory,
    did_you_mean,
    known_options,
    of_factory,
    unknown_option,
)
from locus_memory._internal.providers.drivers import require
from locus_memory._internal.providers.names import checked_name, register
from locus_memory._internal.providers.plugins import Plugins
from locus_memory._internal.quoting import quote
from locus_memory.backends.base import Backend, ComposedBackend
from locus_memory.backends.providers import PROVIDERS, Provider
from locus_memory.checkpoint.base import AnyState, BaseCheckpointer, StateT
from locus_memory.errors import ConfigurationError, UnknownProviderError
from locus_memory.presets import is_preset, read_preset
from locus_memory.store.base import BaseStore

__all__ = [
    "Address",
    "CheckpointerFactory",
    "Provider",
    "StoreFactory",
    "as_checkpointer",
    "as_store",
    "get_checkpointer",
    "get_store",
    "list_checkpointers",
    "list_stores",
    "open_backend",
    "parse_address",
    "register_checkpointer",
    "register_store",
    "resolve_address",
]

ENTRY_POINTS = "locus_memory.backends"
"""The entry point group of third-party providers."""


StoreFactory = Callable[..., BaseStore]
"""Creates a store; called with the hint (`None`: none was given), then the caller's options.

The hint is the first argument. If the factory has a parameter `config_hint`, or nothing but
`**options`, it is passed as `config_hint=`; a factory with only `**options` gets none if there is
no hint.
"""

CheckpointerFactory = Callable[..., BaseCheckpointer]
"""Creates a checkpointer; called like a `StoreFactory`."""

_plugins = Plugins(ENTRY_POINTS, Provider, "locus_memory.registry.Provider")
_PROFILES: Final = {"locus": {"max_chain_depth": 5}}

_stores: dict[str, ConstructionFactory] = {}
_checkpointers: dict[str, ConstructionFactory] = {}


def resolve_address(where: str) -> tuple[Address, Provider]:
    """Return the canonical address of a provider string, with its default hint, and its provider.

    The URL form of a path becomes the path.

    Raises:
        UnknownProviderError: The provider is not registered.
        ConfigurationError: An invalid provider string or hint.
    """
    parsed = _parsed(_expanded(where, {})[0])
    name, provider = _find(parsed.provider)
    return Address(name, _hint(parsed, name, provider)), provider


def _expanded(
    where: str, options: Mapping[str, Any], part: str | None = None
) -> tuple[str, dict[str, Any]]:
    """Return a provider string and options; those of a preset come before the caller's.

    Args:
        where: A provider string, or the name of a preset.
        options: The caller's options.
        part: The `store` or the `checkpointer`, if only one of them is made: options of a preset
            for the other one are left out.

    Raises:
        UnknownProviderError: There is no such preset.
        ConfigurationError: The preset is not valid.
    """
    if not is_preset(where):
        return where, dict(options)
    preset = read_preset(where)
    given = preset.filled_options
    if part is not None:
        other, factories = (
            ("checkpointer", _checkpointers) if part == "store" else ("store", _stores)
        )
        own = _construction(preset.where, part, _stores if part == "store" else _checkpointers)
        beside = _construction(preset.where, other, factories)
        given = {
            name: value
            for name, value in given.items()
            if own is None or own.takes(name) or beside is None or not beside.takes(name)
        }
    return preset.where, {**given, **options}


def _parsed(where: str) -> Address:
    """Return the parts of a provider string, or of a path that implies a provider.

    Raises:
        ConfigurationError: It is neither.
    """
    if isinstance(where, str):  # pyright: ignore[reportUnnecessaryIsInstance] - user input
        known = {*_stores, *_checkpointers, *PROVIDERS}
        for name, provider in PROVIDERS.items():
            if provider.suffixes and is_path(where, provider.suffixes, known):
                return Address(name, where)
    return parse_address(where)


def _hint(address: Address, name: str, provider: Provider) -> str | None:
    if address.hint is None:
        return provider.default
    if provider.parameter is None and _is_tabled(name):
        raise ConfigurationError(f"{name}: takes no hint, write just {quote(name)}")
    if provider.is_path and address.hint.lower().startswith(f"{address.provider}://"):
        path = path_of_url(address.hint, name)
        if provider.suffixes:
            check_below_root(path, name)
        return path
    return address.hint


def _find(name: str) -> tuple[str, Provider]:
    if name in _stores or name in _checkpointers:
        return name, PROVIDERS.get(name, Provider())
    for known, provider in PROVIDERS.items():
        if name == known or name in provider.schemes:
            return known, provider
    plugin = _plugins.find(name)
    if plugin is None:
        raise _unknown(name, {*list_stores(), *list_checkpointers()})
    return name, plugin


def _is_tabled(name: str) -> bool:
    return name not in _stores and name not in _checkpointers


def _unknown(name: str, known: Iterable[str]) -> UnknownProviderError:
    listed = sorted(known)
    return UnknownProviderError(
        f"unknown provider {quote(name)}{did_you_mean(name, listed)} Known: {', '.join(listed)}"
    )


def _construction(
    where: str, part: str, factories: Mapping[str, ConstructionFactory]
) -> Construction | None:
    """Return how to create the `part` (a field of `Provider`); `None` if it has no such part."""
    parsed = _parsed(where)
    factory = factories.get(parsed.provider)
    if factory is not None:
        return factory(parsed.hint)
    address, provider = resolve_address(where)
    target: str | None = getattr(provider, part)
    if target is None:
        return None
    return Construction(
        address.provider,
        _load(target, address.provider, provider.extra),
        parameter=provider.parameter,
        hint=address.hint,
        given=parsed.hint is not None,
    )


def _load(target: str, provider: str, extra: str | None) -> Callable[..., Any]:
    module_name, _, name = target.partition(":")
    if extra is None:
        module = import_module(module_name)
    else:
        module = require(module_name, extra, needed_by=provider)
    loaded: Callable[..., Any] = getattr(module, name)
    return loaded


def get_store(where: str, **options: Any) -> BaseStore:
    """Return a new store, which the caller closes.

    Args:
        where: A provider string, such as `"sqlite:./agent.db"`.
        **options: Keyword arguments of the store's class, and `encryption`; see `open_backend`.

    Raises:
        UnknownProviderError: The provider is not registered.
        UnknownOptionError: The store's class has no such option.
        MissingDriverError: Its driver is not installed.
        ConfigurationError: An invalid provider string, or a provider without a store.
    """
    where, options = _expanded(where, options, "store")
    construction = _construction(where, "store", _stores)
    if construction is None:
        raise _has_no(where, "store", list_stores())
    store: BaseStore = _encrypted(options, partial(construction.make, BaseStore))
    return store


@overload
def get_checkpointer(  # pyright: ignore[reportOverlappingOverload] # the third takes any other option
    where: str, *, state_type: type[StateT], **options: Any
) -> BaseCheckpointer[StateT]: ...
@overload
def get_checkpointer(
    where: str, *, state_type: None, **options: Any
) -> BaseCheckpointer[dict[str, Any]]: ...
@overload
def get_checkpointer(where: str, **options: Any) -> BaseCheckpointer[AnyState]: ...
def get_checkpointer(where: str, **options: Any) -> BaseCheckpointer:
    """Return a new checkpointer, which the caller closes.

    Args:
        where: A provider string, such as `"sqlite:./agent.db"`.
        **options: Keyword arguments of the checkpointer's class, and `encryption`; see
            `open_backend`. `state_type` determines what `load` returns, for a type checker as well.
            `options="locus"` stands for the defaults of the Locus SDK.

    Raises:
        UnknownProviderError: The provider is not registered.
        UnknownOptionError: The checkpointer's class has no such option.
        MissingDriverError: Its driver is not installed.
        ConfigurationError: An invalid provider string, or a provider without checkpoints.
    """
    where, options = _expanded(where, with_profile(options, _PROFILES), "checkpointer")
    construction = _construction(where, "checkpointer", _checkpointers)
    if construction is None:
        raise _has_no(where, "checkpointer", list_checkpointers())
    make = partial(construction.make, BaseCheckpointer)
    checkpointer: BaseCheckpointer = _encrypted(options, make)
    return checkpointer


def _encrypted(options: Mapping[str, Any], make: Callable[[dict[str, Any]], Any]) -> Any:
    """Return the result of `make` for the other options, encrypted if `encryption` is given."""
    others = {name: value for name, value in options.items() if name != "encryption"}
    encryption = options.get("encryption")
    if encryption is None:
        return make(others)
    # By name, like a backend: the wrappers import this module.
    wrap = getattr(import_module("locus_memory.encryption.backend"), "encrypted")  # noqa: B009 - as above
    return wrap(make(others), encryption, others)


def _has_no(where: str, part: str, have: Iterable[str]) -> ConfigurationError:
    return ConfigurationError(
        f"{_parsed(where).provider}: has no {part}; providers that have one: {', '.join(have)}"
    )


@overload
def open_backend(  # pyright: ignore[reportOverlappingOverload] # as above
    where: str, *, state_type: type[StateT], **options: Any
) -> Backend[StateT]: ...
@overload
def open_backend(where: str, *, state_type: None, **options: Any) -> Backend[dict[str, Any]]: ...
@overload
def open_backend(where: str, **options: Any) -> Backend[AnyState]: ...
def open_backend(where: str, **options: Any) -> Backend:
    """Return a new backend: a store and a checkpointer over one connection.

    Use it as `async with open_backend(...) as backend`; it connects on entry or first use.

    Args:
        where: A provider string, such as `"sqlite:./agent.db"`.
        **options: Keyword arguments of the backend's class, or else of the store's or the
            checkpointer's class, or of both. With `encryption`, items and checkpoints are
            encrypted: `EncryptionKeys`, or a text as for `EncryptionKeys.parse`.

    Raises:
        UnknownProviderError: The provider is not registered.
        UnknownOptionError: None of the classes has such an option.
        MissingDriverError: Its driver is not installed.
        ConfigurationError: An invalid provider string.
    """
    where, options = _expanded(where, options)
    backend: Backend = _encrypted(options, partial(_backend, where))
    return backend


def _backend(where: str, options: Mapping[str, Any]) -> Backend:
    store = _construction(where, "store", _stores)
    checkpointer = _construction(where, "checkpointer", _checkpointers)
    name = _parsed(where).provider
    construction = _construction(where, "backend", {}) if _is_tabled(name) else None
    _check_options(options, [part for part in (construction, store, checkpointer) if part])
    if construction is None:
        return _compose(name, store, checkpointer, options)
    backend: Backend = construction.make(
        Backend, _routed(options, construction, store, checkpointer)
    )
    return backend


def _check_options(options: Mapping[str, Any], parts: list[Construction]) -> None:
    for option in options:
        if not any(part.takes(option) for part in parts):
            known = {name for part in parts for name in known_options(part.target) or ()}
            known -= {"store_options", "checkpointer_options"}
            raise unknown_option(parts[0].provider, option, known)


def _compose(
    name: str,
    store: Construction | None,
    checkpointer: Construction | None,
    options: Mapping[str, Any],
) -> Backend:
    return ComposedBackend(
        name,
        store.make(BaseStore, _accepted(options, store)) if store else None,
        checkpointer.make(BaseCheckpointer, _accepted(options, checkpointer))
        if checkpointer
        else None,
    )


def _routed(
    options: Mapping[str, Any],
    backend: Construction,
    store: Construction | None,
    checkpointer: Construction | None,
) -> dict[str, Any]:
    """Return the options that a backend's class accepts: its own, then those of its parts."""
    own = _accepted(options, backend)
    rest = {name: value for name, value in options.items() if name not in own}
    for part, construction in (("store_options", store), ("checkpointer_options", checkpointer)):
        if construction is not None:
            own[part] = {**(own.get(part) or {}), **_accepted(rest, construction)}
    return own


def _accepted(options: Mapping[str, Any], construction: Construction) -> dict[str, Any]:
    return {name: value for name, value in options.items() if construction.takes(name)}


def as_store(where: str | BaseStore | Backend) -> tuple[BaseStore, bool]:
    """Return a store, and whether the caller owns it and has to close it.

    A provider string creates a new store, which the caller owns. A store or a backend that is
    passed in keeps its owner. One that has four verbs of values alone is seen whole through a
    `FourVerbStore`.

    Raises:
        ConfigurationError: It is none of these, or it has no store.
    """
    if isinstance(where, BaseStore):
        # A store of a string needs none of it.
        from locus_memory.backends.four_verbs import whole  # noqa: PLC0415

        return whole(where), False
    if isinstance(where, Backend):
        return where.store, False
    return get_store(where), True


def as_checkpointer(where: str | BaseCheckpointer | Backend) -> tuple[BaseCheckpointer, bool]:
    """Return a checkpointer, and whether the caller owns it and has to close it.

    Ownership is as for `as_store`.

    Raises:
        ConfigurationError: It is none of these, or it has no checkpointer.
    """
    if isinstance(where, BaseCheckpointer):
        return where, False
    if isinstance(where, Backend):
        return where.checkpointer, False
    return get_checkpointer(where), True


def register_store(name: str, factory: StoreFactory) -> Callable[[], None]:
    """Register your own store as `name`; it takes precedence over a built-in one.

    Args:
        name: The provider, as provider strings spell it.
        factory: Called with the hint and the caller's options, see `StoreFactory`.

    Returns:
        A function that unregisters it.

    Raises:
        ConfigurationError: The name is not valid in a provider string.
    """
    return _register(_stores, name, factory)


def register_checkpointer(name: str, factory: CheckpointerFactory) -> Callable[[], None]:
    """Register your own checkpointer as `name`, as `register_store` does for a store.

    Raises:
        ConfigurationError: The name is not valid in a provider string.
    """
    return _register(_checkpointers, name, factory)


def _register(
    factories: dict[str, ConstructionFactory], name: str, factory: Callable[..., Any]
) -> Callable[[], None]:
    key = checked_name(name, "a provider's name")
    return register(factories, key, of_factory(key, factory))


def list_stores() -> list[str]:
    """Return the providers that have a store, in alphabetical order."""
    return _listed("store", _stores)


def list_checkpointers() -> list[str]:
    """Return the providers that have checkpoints, in alphabetical order."""
    return _listed("checkpointer", _checkpointers)


def _listed(part: str, factories: Iterable[str]) -> list[str]:
    rows = {**_plugins.all(), **PROVIDERS}
    return sorted({name for name, row in rows.items() if getattr(row, part)} | set(factories))
