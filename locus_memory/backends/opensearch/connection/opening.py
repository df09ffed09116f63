"""The features of a cluster, and its indexes: created, checked and brought up to date."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from locus_memory.backends.opensearch.connection.driver_errors import IndexLostError
from locus_memory.backends.opensearch.schema import META, Features, Index
from locus_memory.errors import (
    BackendCorruptError,
    BackendError,
    BackendUnavailableError,
    ConfigurationError,
)
from locus_memory.events import emit

__all__ = ["Ask", "Maker", "probe"]

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


class Maker:
    """Creates an index, or checks the one that exists and adds the fields of newer versions.

    Every step may run in several tasks and processes at once.

    Args:
        ask: Sends a request.
        place: The name of the cluster in messages.
        features: The features of the cluster.
        shards: The number of shards of a new index.
        replicas: The number of its replicas; `None`: one if there is a second node.
    """

    def __init__(
        self, ask: Ask, place: str, features: Features, *, shards: int, replicas: int | None
    ) -> None:
        self._ask = ask
        self._place = place
        self._features = features
        self._shards = shards
        self._replicas = replicas

    async def make(self, alias: str, index: Index) -> None:
        """Create the index, or bring the existing one up to date.

        Raises:
            BackendUnavailableError: It does not become usable in time.
            BackendCorruptError: An index of that name is not the library's, or was altered.
            ConfigurationError: A newer version of the library made it, or the user lacks a right.
        """
        found = await self._mappings(alias)
        if found is None:
            await self._create(alias, index)
            await self._wait_until_usable(alias)
            found = await self._mappings(alias)
        if found is None:
            raise BackendUnavailableError(f"{self._name(alias)} was created and is gone again")
        if found:
            await self._check(alias, index, found)

    async def version(self, alias: str) -> int:
        """Return the version of an index; 0 if it is not there, not ours, or may not be read."""
        found = await self._mappings(alias) or {}
        version = (found.get("_meta") or {}).get(META)
        return version if isinstance(version, int) else 0

    def _name(self, alias: str) -> str:
        return f"opensearch {self._place}: index {alias}"

    async def _mappings(self, alias: str) -> dict[str, Any] | None:
        """Return the mappings of the index; `None`: there is none, `{}`: the user may not know."""
        try:
            answer = await self._ask("GET", f"/{alias}/_mapping", ignore=(403, 404), again=True)
            if "error" in answer:
                # Those who may only read and write find out so whether there is one.
                # The routing, since an index may require one.
                params = {"routing": "0"}
                path = f"/{alias}/_doc/0"
                await self._ask("GET", path, params=params, ignore=(403, 404), again=True)
        except IndexLostError:
            return None
        if "error" in answer:
            emit("opensearch.unchecked_index", place=self._place, index=alias)
            return {}
        if len(answer) != 1 or alias in answer:
            raise BackendCorruptError(
                f"{self._name(alias)} is not the alias of one index; pass another index_prefix"
            )
        (found,) = answer.values()
        mappings: dict[str, Any] = found.get("mappings") or {"properties": {}}
        return mappings

    async def _create(self, alias: str, index: Index) -> None:
        body = index.body(alias, self._features, shards=self._shards, replicas=self._replicas)
        params = {"wait_for_active_shards": 1, "timeout": _WAIT}
        answer = await self._ask(
            "PUT", f"/{alias}{_NUMBER}", body=body, params=params, ignore=(400,), again=True
        )
        if "error" not in answer:
            return
        # Otherwise another task or process was faster.
        if answer["error"].get("type") != "resource_already_exists_exception":
            raise BackendError(
                f"{self._name(alias)} cannot be created: {answer['error'].get('reason')}"
            )

    async def _wait_until_usable(self, alias: str) -> None:
        params = {"wait_for_status": "yellow", "timeout": _WAIT}
        path = f"/_cluster/health/{alias}"
        answer = await self._ask("GET", path, params=params, ignore=(403, 408), again=True)
        if answer.get("timed_out"):
            raise BackendUnavailableError(f"{self._name(alias)} has no active shards")

    async def _check(self, alias: str, index: Index, found: Mapping[str, Any]) -> None:
        version = (found.get("_meta") or {}).get(META)
        if not isinstance(version, int):
            raise BackendCorruptError(
                f"{self._name(alias)} was not made by this library; pass another index_prefix"
            )
        if version > index.version:
            raise ConfigurationError(
                f"{self._name(alias)} has version {version}, newer than {index.version}, the "
                "newest that this version of the library knows; upgrade it"
            )
        for added in index.migrations[version - 1 :]:
            version += 1
            body = {"properties": added, "_meta": {META: version}}
            await self._ask("PUT", f"/{alias}/_mapping", body=body, again=True)
        if version == index.version and index.migrations:
            found = await self._mappings(alias) or found
        self._check_fields(alias, index.properties, found.get("properties") or {})

    def _check_fields(
        self, alias: str, wanted: Mapping[str, Any], found: Mapping[str, Any]
    ) -> None:
        for name, field in wanted.items():
            kind = (found.get(name) or {}).get("type", "object")
            if name not in found or kind != field.get("type", "object"):
                raise BackendCorruptError(
                    f"{self._name(alias)}: the field {name!r} is "
                    f"{kind if name in found else 'missing'}, not {field.get('type')}; the index "
                    "was altered"
                )
