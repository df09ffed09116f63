"""The features of a cluster, and its indexes: created, checked and brought up to date."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from locus_memory.backends.opensearch.connection.driver_errors import IndexLostError
from locus_memory.backends.opensearch.options import OpenSearchOptions
from locus_memory.backends.opensearch.schema import META, Features, Index
from locus_memory.errors import (
    BackendCorruptError,
    BackendError,
    BackendUnavailableError,
    ConfigurationError,
)
from locus_memory.events import emit

__all__ = ["Ask", "make_index", "probe", "version_of"]

Ask = Callable[..., Awaitable[Any]]
"""`OpenSearchConnection.request`."""

_OLDEST: Final = (2,)

_WAIT: Final = "30s"
"""The time that a new index has to become usable."""

_NUMBER: Final = "-000001"


async def probe(ask: Ask, place: str) -> Features:
    """Return the features of the cluster, as far as the user may know them.

    Raises:
        BackendUnavailableError: It cannot be reached.
        ConfigurationError: It refuses the password, or is no OpenSearch 2 or newer.
    """
    told = await ask("GET", "/", ignore=(403,), again=True)
    version = told.get("version") if isinstance(told, dict) else None
    if not isinstance(version, Mapping):
        # The user has no right to ask, but perhaps to the indexes.
        return Features(knn=await _has_knn(ask))
    number = tuple(int(part) for part in re.findall(r"\d+", str(version.get("number")))[:3])
    if version.get("distribution") != "opensearch" or number < _OLDEST:
        raise ConfigurationError(
            f"opensearch {place}: needs OpenSearch 2 or newer, found "
            f"{version.get('distribution', 'Elasticsearch')} {version.get('number')}"
        )
    return Features(
        version=number, cluster=str(told.get("cluster_uuid", "")), knn=await _has_knn(ask)
    )


async def _has_knn(ask: Ask) -> bool:
    params = {"format": "json", "h": "component"}
    plugins = await ask("GET", "/_cat/plugins", params=params, ignore=(403,), again=True)
    return isinstance(plugins, list) and any(
        each.get("component") == "opensearch-knn" for each in plugins
    )


async def make_index(
    ask: Ask, place: str, features: Features, options: OpenSearchOptions, index: Index
) -> None:
    """Create an index, or check the one that exists and add the fields of newer versions.

    Every step may run in several tasks and processes at once.

    Args:
        ask: Sends a request.
        place: The name of the cluster in messages.
        features: The features of the cluster.
        options: The prefix of its name, its shards and its replicas.
        index: The index.

    Raises:
        BackendUnavailableError: It does not become usable in time.
        BackendCorruptError: An index of that name is not the library's, or was altered.
        ConfigurationError: A newer version of the library made it, or the user lacks a right.
    """
    alias = options.index_prefix + index.suffix
    name = f"opensearch {place}: index {alias}"
    found = await _mappings(ask, place, alias)
    if found is None:
        body = index.body(alias, features, shards=options.shards, replicas=options.replicas)
        params = {"wait_for_active_shards": 1, "timeout": _WAIT}
        path = f"/{alias}{_NUMBER}"
        answer = await ask("PUT", path, body, params=params, ignore=(400,), again=True)
        refused = answer.get("error", {})
        # Otherwise another task or process was faster.
        if refused and refused.get("type") != "resource_already_exists_exception":
            raise BackendError(f"{name} cannot be created: {refused.get('reason')}")
        params = {"wait_for_status": "yellow", "timeout": _WAIT}
        path = f"/_cluster/health/{alias}"
        answer = await ask("GET", path, params=params, ignore=(403, 408), again=True)
        if answer.get("timed_out"):
            raise BackendUnavailableError(f"{name} has no active shards")
        found = await _mappings(ask, place, alias)
    if found is None:
        raise BackendUnavailableError(f"{name} was created and is gone again")
    if found and await _upgrade(ask, name, alias, index, found):
        found = await _mappings(ask, place, alias) or found
    if found:
        _check_fields(name, index.properties, found.get("properties") or {})


async def version_of(ask: Ask, place: str, alias: str) -> int:
    """Return the version of an index; 0 if it is not there, not ours, or may not be read."""
    version = _version(await _mappings(ask, place, alias) or {})
    return 0 if version is None else version


def _version(found: Mapping[str, Any]) -> int | None:
    version = (found.get("_meta") or {}).get(META)
    return version if isinstance(version, int) else None


async def _mappings(ask: Ask, place: str, alias: str) -> dict[str, Any] | None:
    """Return the mappings of the index; `None`: there is none, `{}`: the user may not know."""
    try:
        answer = await ask("GET", f"/{alias}/_mapping", ignore=(403, 404), again=True)
        if "error" in answer:
            # Those who may only read and write find out so whether there is one.
            # The routing, since an index may require one.
            params = {"routing": "0"}
            await ask("GET", f"/{alias}/_doc/0", params=params, ignore=(403, 404), again=True)
    except IndexLostError:
        return None
    if "error" in answer:
        emit("opensearch.unchecked_index", place=place, index=alias)
        return {}
    if len(answer) != 1 or alias in answer:
        raise BackendCorruptError(
            f"opensearch {place}: index {alias} is not the alias of one index; pass another "
            "index_prefix"
        )
    (found,) = answer.values()
    mappings: dict[str, Any] = found.get("mappings") or {"properties": {}}
    return mappings


async def _upgrade(ask: Ask, name: str, alias: str, index: Index, found: Mapping[str, Any]) -> bool:
    """Add the fields of newer versions; return whether there may be other ones now."""
    version = _version(found)
    if version is None:
        raise BackendCorruptError(f"{name} was not made by this library; pass another index_prefix")
    if version > index.version:
        raise ConfigurationError(
            f"{name} has version {version}, newer than {index.version}, the newest that this "
            "version of the library knows; upgrade it"
        )
    for added in index.migrations[version - 1 :]:
        version += 1
        body = {"properties": added, "_meta": {META: version}}
        await ask("PUT", f"/{alias}/_mapping", body, again=True)
    return bool(index.migrations)


def _check_fields(name: str, wanted: Mapping[str, Any], found: Mapping[str, Any]) -> None:
    for each, field in wanted.items():
        kind = (found.get(each) or {}).get("type", "object")
        if each not in found or kind != field.get("type", "object"):
            raise BackendCorruptError(
                f"{name}: the field {each!r} is {kind if each in found else 'missing'}, not "
                f"{field.get('type')}; the index was altered"
            )
