"""What is configured badly about an OpenSearch cluster."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from locus_memory.backends.advice import Advice, is_remote, on_clock, on_version
from locus_memory.backends.opensearch.connection.connection import OpenSearchConnection
from locus_memory.backends.opensearch.connection.driver_errors import IndexLostError
from locus_memory.backends.opensearch.items.mapping import ITEMS
from locus_memory.backends.opensearch.schema import CHECKPOINTS, Index

__all__ = ["advise", "outdated"]

_REFUSALS: Final = (400, 401, 403, 404, 405)
"""The statuses where the user has no right to ask, or the service of a cloud does not tell."""

_LEAST_DELETED: Final = 10_000
_MOST_DELETED: Final = 0.5
_LONGEST_REFRESH: Final = 10.0
"""Seconds until a search sees the write of another process; the library asks for one."""

_UNITS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_SIZES: Final = {"b": 1, "kb": 2**10, "mb": 2**20, "gb": 2**30, "tb": 2**40, "pb": 2**50}
_NUMBER: Final = re.compile(r"([\d.]+)\s*([a-z%]*)")

_STAGES: Final = {
    "flood_stage": "its indexes become read-only",
    "high": "the cluster moves its shards away",
    "low": "the cluster puts no new shards there",
}
"""The watermarks of a disk, the worst first, and what follows."""


Row = tuple[bool, str, str, str]
"""Whether there is something to tell; then the name of the advice, the problem and the remedy."""


async def advise(connection: OpenSearchConnection) -> list[Advice]:
    """Return what is configured badly, and what to do; of what the user may not ask, nothing."""
    await connection.open()
    before = time.time()
    nodes = (await _asked(connection, "/_nodes/stats/fs")).get("nodes", {}).values()
    settings = await _asked(connection, "/_cluster/settings", include_defaults="true")
    plugins = await _asked(connection, "/_cat/plugins", format="json", h="component")
    clocks = (on_clock("opensearch", node["timestamp"] / 1000, before) for node in nodes)
    rows = [*_on_cluster(connection, plugins), *_on_disks(list(nodes), _disk_settings(settings))]
    for index in (ITEMS, CHECKPOINTS):
        rows += await _on_index(connection, index)
    return [
        *next(filter(None, map(list, clocks)), []),
        *(
            Advice(f"opensearch.{name}", problem, remedy)
            for is_bad, name, problem, remedy in rows
            if is_bad
        ),
    ]


async def outdated(connection: OpenSearchConnection) -> list[Advice]:
    """Return advice if an earlier version of the library made an index, which is only read."""
    return [
        each
        for index in (ITEMS, CHECKPOINTS)
        for each in on_version(
            "opensearch",
            f"the index {connection.index(index)}",
            await connection.version(index),
            index.version,
        )
    ]


async def _asked(connection: OpenSearchConnection, path: str, **params: str) -> Any:
    """Return an answer; an empty one if the user may not ask, or there is no such index."""
    try:
        answer = await connection.request("GET", path, params=params, ignore=_REFUSALS, again=True)
    except IndexLostError:
        return {}
    return {} if "error" in answer else answer


def _on_cluster(connection: OpenSearchConnection, plugins: Any) -> list[Row]:
    named = {each.get("component") for each in plugins} if isinstance(plugins, list) else None
    return [
        *(
            (
                is_remote(host),
                "unencrypted",
                f"the connection to {host} is not encrypted",
                "use https:// in the URL, and let the cluster listen with TLS",
            )
            for host in connection.plain_hosts
        ),
        (
            connection.trusts_all,
            "unverified",
            "the certificate of the cluster is not verified: another server may pose as it",
            "leave verify_certs on, and name the authority with ca_certs",
        ),
        (
            named is not None and "opensearch-knn" not in named,
            "knn",
            "the plugin opensearch-knn is missing: there is no search by meaning",
            "install it on each node, as in the full distribution, and restart them",
        ),
    ]


def _on_disks(nodes: Sequence[Mapping[str, Any]], disk: Mapping[str, Any]) -> Iterator[Row]:
    # A node alone has nowhere to move its shards: only the last mark counts.
    is_alone = len(nodes) == 1 and _mark(disk, "enable_for_single_data_node") != "true"
    stages = ["flood_stage"] if is_alone else list(_STAGES)
    for node in nodes:
        total = node.get("fs", {}).get("total", {})
        size, free = total.get("total_in_bytes", 0), total.get("available_in_bytes", 0)
        passed = next((each for each in stages if _is_over(_mark(disk, each), size, free)), "")
        yield (
            bool(passed) and str(disk.get("threshold_enabled")).lower() == "true",
            "disk",
            (
                f"the disk of the node {node.get('name')} is "
                f"{100 - 100 * free // (size or 1)}% full, over the {passed} watermark: "
                f"{_STAGES.get(passed)}"
            ),
            "add disk or nodes, or delete data with locus-memory retain",
        )


def _disk_settings(answer: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of watermarks: those of the cluster before the defaults."""
    merged: dict[str, Any] = {"watermark": {}}
    for level in ("defaults", "persistent", "transient"):
        part: Any = answer.get(level, {})
        for name in ("cluster", "routing", "allocation", "disk"):
            part = part.get(name, {})
        watermark = {**merged["watermark"], **part.get("watermark", {})}
        merged |= {**part, "watermark": watermark}
    return merged


def _mark(disk: Mapping[str, Any], stage: str) -> str:
    mark = disk["watermark"].get(stage, "")
    # A limit of its own may hold beside it, so that the mark is an object.
    return str(mark.get("", "") if isinstance(mark, Mapping) else mark)


def _is_over(mark: str, size: int, free: int) -> bool:
    """Return whether a disk is fuller than a mark: a percentage, a ratio, or free bytes."""
    matched = _NUMBER.fullmatch(mark.strip().lower())
    if matched is None or not size:
        return False
    number, unit = float(matched[1]), matched[2]
    if unit in _SIZES:
        return free < number * _SIZES[unit]
    return (size - free) / size > (number / 100 if unit == "%" else number)


async def _on_index(connection: OpenSearchConnection, index: Index) -> list[Row]:
    name = connection.index(index)
    settings = await _asked(connection, f"/{name}/_settings")
    health = await _asked(connection, f"/_cluster/health/{name}", level="indices")
    stats = await _asked(connection, f"/{name}/_stats/docs")
    nodes = health.get("number_of_data_nodes", 1)
    takes_vectors = index is ITEMS and connection.features.knn
    rows = [_on_deleted(name, stats)]
    for each in settings.values():
        found = each["settings"].get("index", {})
        rows += _on_settings(name, found, is_items=index is ITEMS, takes_vectors=takes_vectors)
    for each in health.get("indices", {}).values():
        rows += _on_health(name, each, nodes)
    return rows


def _on_settings(
    name: str, settings: Mapping[str, Any], *, is_items: bool, takes_vectors: bool
) -> list[Row]:
    blocks = settings.get("blocks", {})
    blocked = [each for each, value in blocks.items() if value == "true" and each != "metadata"]
    block = next(iter(blocked), "")
    interval = settings.get("refresh_interval", "1s")
    return [
        (
            takes_vectors and settings.get("knn") != "true",
            "knn_index",
            f"the index {name} is older than the plugin opensearch-knn, and refuses vectors",
            "copy the database to another index_prefix with locus-memory migrate",
        ),
        (
            bool(blocked),
            "read_only",
            f"the index {name} has the block {block}"
            + (", as after a full disk" if "allow_delete" in block else ""),
            f"make room, then set index.blocks.{block} of {name} to null",
        ),
        (
            settings.get("translog", {}).get("durability") == "async",
            "durability",
            f"the translog of {name} is async: a crash may lose writes that were acknowledged",
            f"set index.translog.durability of {name} to request",
        ),
        (
            # The listing of threads refreshes their index itself.
            is_items and not 0 <= _seconds(interval) <= _LONGEST_REFRESH,
            "refresh",
            (
                f"the refresh interval of {name} is {interval}: searches see the writes of other "
                "processes as late"
            ),
            f"set index.refresh_interval of {name} to 1s",
        ),
    ]


def _seconds(interval: str) -> float:
    """Return the seconds of `30s` or `500ms`; `-1` is never."""
    matched = _NUMBER.fullmatch(interval)
    return -1.0 if matched is None else float(matched[1]) * _UNITS.get(matched[2], 1.0)


def _on_health(name: str, health: Mapping[str, Any], nodes: int) -> list[Row]:
    """Return the rows on the copies of an index, of which one is told."""
    replicas, status = health["number_of_replicas"], health["status"]
    explain = "ask GET /_cluster/allocation/explain for the reason"
    rows = [
        (
            status == "red",
            "red",
            f"the index {name} lacks shards: its data is not all there",
            explain,
        ),
        (
            replicas >= nodes,
            "replicas",
            (
                f"the index {name} is to have {replicas} replicas, and {nodes} nodes have data: "
                "the cluster stays yellow"
            ),
            f"add a node, or set index.auto_expand_replicas of {name} to 0-1",
        ),
        (
            status == "yellow",
            "yellow",
            f"{health['unassigned_shards']} replicas of {name} have no node",
            explain,
        ),
        (
            not replicas and nodes > 1,
            "one_copy",
            f"the index {name} has no replica: the loss of a node loses data",
            f"set index.auto_expand_replicas of {name} to 0-1",
        ),
    ]
    return [row for row in rows if row[0]][:1]


def _on_deleted(name: str, stats: Mapping[str, Any]) -> Row:
    docs = stats.get("_all", {}).get("primaries", {}).get("docs", {})
    live, deleted = docs.get("count", 0), docs.get("deleted", 0)
    return (
        deleted > _LEAST_DELETED and deleted > live * _MOST_DELETED,
        "deleted",
        (
            f"{name} has {deleted:,} deleted documents beside {live:,} live ones: searches read "
            "them all"
        ),
        "locus-memory compact erases those that were deleted half a minute ago or earlier",
    )
