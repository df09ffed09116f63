"""What is configured badly about an OpenSearch cluster."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from typing import Any, Final

from locus_memory.backends.advice import (
    Advice,
    Check,
    by_facts,
    on_clock,
    on_plain,
    on_version,
)
from locus_memory.backends.opensearch.connection.connection import OpenSearchConnection
from locus_memory.backends.opensearch.connection.driver_errors import IndexLostError
from locus_memory.backends.opensearch.items.mapping import ITEMS
from locus_memory.backends.opensearch.schema import CHECKPOINTS, Index

__all__ = ["advise", "outdated"]

_REFUSALS: Final = (400, 401, 403, 404, 405)
"""The statuses where the user has no right to ask, or the service of a cloud does not tell."""

_LEAST_DELETED: Final = 10_000
_MOST_DELETED: Final = 0.5
_MOST_FULL: Final = 90
"""Percent of a disk: of the marks that are set by default, the second one."""

_PROMPT: Final = re.compile(r"\d{1,4}ms|10000ms|\ds|10s")
"""A refresh interval after which a search sees the write of another process soon."""

_BLOCKS: Final = ("read_only", "read_only_allow_delete", "read", "write")
"""What forbids reads or writes of an index."""

_CLUSTER: Final = (
    Check(
        "unverified",
        lambda case: case["trusts_all"],
        "the certificate of the cluster is not verified: another server may pose as it",
        "leave verify_certs on, and name the authority with ca_certs",
    ),
    Check(
        "knn",
        lambda case: case["plugins"] and "opensearch-knn" not in case["plugins"],
        "the plugin opensearch-knn is missing: there is no search by meaning",
        "install it on each node, as in the full distribution, and restart them",
    ),
)

_DISK: Final = Check(
    "disk",
    lambda case: case["full"] > _MOST_FULL,
    "the disk of the node {name} is {full}% full: at its watermarks, the cluster moves shards away "
    "or makes its indexes read-only",
    "add disk or nodes, or delete data with locus-memory retain",
)

_INDEX: Final = (
    Check(
        "deleted",
        lambda case: case["deleted"] > max(_LEAST_DELETED, case["count"] * _MOST_DELETED),
        "{index} has {deleted:,} deleted documents beside {count:,} live ones: searches read them "
        "all",
        "locus-memory compact erases those that were deleted half a minute ago or earlier",
    ),
    Check(
        "knn_index",
        lambda case: case["takes_vectors"] and case["knn"] != "true",
        "the index {index} is older than the plugin opensearch-knn, and refuses vectors",
        "copy the database to another index_prefix with locus-memory migrate",
    ),
    Check(
        "read_only",
        lambda case: case["block"],
        "the index {index} has the block {block}, as after a full disk",
        "make room, then set index.blocks.{block} of {index} to null",
    ),
    Check(
        "durability",
        lambda case: case["durability"] == "async",
        "the translog of {index} is async: a crash may lose writes that were acknowledged",
        "set index.translog.durability of {index} to request",
    ),
    Check(
        # The listing of threads refreshes their index itself.
        "refresh",
        lambda case: case["is_items"] and not _PROMPT.fullmatch(case["interval"]),
        "the refresh interval of {index} is {interval}: searches see the writes of other processes "
        "as late",
        "set index.refresh_interval of {index} to 1s",
    ),
    Check(
        "replicas",
        lambda case: case["status"] != "green" or (not case["replicas"] and case["nodes"] > 1),
        "the index {index} is {status}, with {replicas} replicas on {nodes} nodes with data and "
        "{unassigned} shards without a node: red lacks data, yellow lacks copies, and without a "
        "replica the loss of a node loses data",
        "set index.auto_expand_replicas of {index} to 0-1, add a node, or ask GET "
        "/_cluster/allocation/explain for the reason",
    ),
)


async def advise(connection: OpenSearchConnection) -> list[Advice]:
    """Return what is configured badly, and what to do; of what the user may not ask, nothing."""
    await connection.open()
    before = time.time()
    nodes = (await _asked(connection, "/_nodes/stats/fs")).get("nodes", {}).values()
    plugins = await _asked(connection, "/_cat/plugins", format="json", h="component")
    named = [each.get("component") for each in plugins] if isinstance(plugins, list) else []
    cluster = {"trusts_all": connection.trusts_all, "plugins": named}
    clocks = (on_clock("opensearch", node["timestamp"] / 1000, before) for node in nodes)
    remedy = "use https:// in the URL, and let the cluster listen with TLS"
    return [
        *next(filter(None, map(list, clocks)), []),
        *on_plain("opensearch", connection.plain_hosts, remedy),
        *by_facts("opensearch", _CLUSTER, [cluster]),
        *by_facts("opensearch", [_DISK], map(_disk, nodes)),
        *by_facts("opensearch", _INDEX, [await _index(connection, ITEMS)]),
        *by_facts("opensearch", _INDEX, [await _index(connection, CHECKPOINTS)]),
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


def _disk(node: Mapping[str, Any]) -> dict[str, Any]:
    total = node.get("fs", {}).get("total", {})
    size, free = total.get("total_in_bytes", 0), total.get("available_in_bytes", 0)
    return {"name": node.get("name"), "full": 100 - 100 * free // size if size else 0}


async def _index(connection: OpenSearchConnection, index: Index) -> dict[str, Any]:
    """Return the facts of an index."""
    name = connection.index(index)
    settings = await _asked(connection, f"/{name}/_settings", flat_settings="true")
    health = await _asked(connection, f"/_cluster/health/{name}", level="indices")
    stats = await _asked(connection, f"/{name}/_stats/docs")
    found = _only(settings).get("settings", {})
    state = _only(health.get("indices", {}))
    docs = stats.get("_all", {}).get("primaries", {}).get("docs", {})
    blocks = (each.removeprefix("index.blocks.") for each, on in found.items() if on == "true")
    return {
        "index": name,
        "is_items": index is ITEMS,
        "takes_vectors": bool(found) and index is ITEMS and connection.features.knn,
        "knn": found.get("index.knn"),
        "block": next((each for each in blocks if each in _BLOCKS), ""),
        "durability": found.get("index.translog.durability"),
        "interval": found.get("index.refresh_interval", "1s"),
        "count": docs.get("count", 0),
        "deleted": docs.get("deleted", 0),
        "status": state.get("status", "green"),
        "replicas": state.get("number_of_replicas", 1),
        "nodes": health.get("number_of_data_nodes", 1),
        "unassigned": state.get("unassigned_shards", 0),
    }


def _only(answer: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what an answer says of the one index behind a name."""
    return next(iter(answer.values()), {})
