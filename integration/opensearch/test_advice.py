"""What is configured badly about a cluster is told with a remedy, by real nodes."""

from __future__ import annotations

import http.client
import json
import time
from dataclasses import replace

import pytest

from locus_memory.backends.opensearch import advice, store
from locus_memory.backends.opensearch.items.mapping import ITEMS
from locus_memory.backends.opensearch.schema import Features
from locus_memory.errors import ConfigurationError
from locus_memory.registry import open_backend


async def names(backend):
    found = await backend.advice()
    assert all(each.finding and each.remedy for each in found)
    return [each.name.removeprefix("opensearch.") for each in found]


def change(server, index, **settings):
    server.call("PUT", f"/{index}/_settings", {"index": settings})


class Shared:
    """A server of the whole run, of which a test has the indexes with its prefix."""

    def __init__(self, url):
        self.url = url
        self.port = int(url.rpartition(":")[2])

    def call(self, method, path, body=None):
        host = self.url.removeprefix("opensearch:").rpartition(":")[0].removeprefix("http://")
        connection = http.client.HTTPConnection(host, self.port, timeout=30)
        headers = {"Content-Type": "application/json"}
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        answer = connection.getresponse()
        told = json.loads(answer.read())
        connection.close()
        assert answer.status < 300, told
        return told


@pytest.fixture
def own_server(opensearch_url, prefix):
    server = Shared(opensearch_url)
    yield server
    server.call("DELETE", f"/{prefix}*")


@pytest.fixture
async def backend(own_server, prefix):
    async with open_backend(own_server.url, index_prefix=prefix) as backend:
        await backend.store.put(("a",), "b", 1)
        await backend.checkpointer.save({"n": 1}, "t")
        yield backend


async def test_a_good_cluster_needs_none(backend):
    assert await names(backend) == []


async def test_the_settings_of_an_index(backend, own_server, prefix):
    change(own_server, f"{prefix}items", refresh_interval="-1", **{"translog.durability": "async"})
    change(own_server, f"{prefix}checkpoints", refresh_interval="-1")
    assert await names(backend) == ["durability", "refresh"]
    change(own_server, f"{prefix}items", refresh_interval="5m")
    assert await names(backend) == ["durability", "refresh"]
    change(own_server, f"{prefix}items", refresh_interval="500ms")
    assert await names(backend) == ["durability"]


async def test_a_block_as_after_a_full_disk(backend, own_server, prefix):
    change(own_server, f"{prefix}items", **{"blocks.read_only_allow_delete": True})
    [found] = await backend.advice()
    assert (found.name, "full disk" in found.finding) == ("opensearch.read_only", True)
    change(own_server, f"{prefix}items", **{"blocks.read_only_allow_delete": None})
    assert await names(backend) == []


async def test_replicas_without_a_second_node(backend, own_server, prefix):
    replicas = {"auto_expand_replicas": False, "number_of_replicas": 1}
    change(own_server, f"{prefix}checkpoints", **replicas)
    assert await names(backend) == ["replicas"]


async def test_deleted_documents(backend, own_server, prefix):
    # Or the server merges them away sooner or later.
    merging = {
        "merge.policy.deletes_pct_allowed": 50,
        "merge.policy.segments_per_tier": 100,
    }
    change(own_server, f"{prefix}items", **merging)
    for first in range(0, 9_000, 3_000):
        some = [(("drop",), f"{first + n}", n) for n in range(4_000)]
        await backend.store.put_batch([*some, *((("keep",), key, n) for _, key, n in some[:500])])
    assert "deleted" not in await names(backend)
    await backend.store.clear_namespace(("drop",))
    own_server.call("POST", f"/{prefix}items/_refresh")
    assert await names(backend) == ["deleted"]
    # The server keeps what was just deleted for replicas that are behind.
    deadline = time.monotonic() + 90
    while await names(backend):
        assert time.monotonic() < deadline
        await backend.compact()


async def test_an_index_older_than_the_plugin(own_server, prefix):
    body = ITEMS.body(f"{prefix}items", Features(), shards=1, replicas=None)
    own_server.call("PUT", f"/{prefix}items-000001", body)
    async with open_backend(own_server.url, index_prefix=prefix) as backend:
        assert await names(backend) == ["knn_index"]


async def test_a_clock_that_differs(backend, monkeypatch):
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() + 3600)
    assert await names(backend) == ["clock"]


async def test_a_connection_that_is_not_to_a_loopback_address(own_server, prefix):
    # This machine too, but nothing says so.
    address = f"opensearch:0.0.0.0:{own_server.port}"
    async with open_backend(address, index_prefix=prefix) as backend:
        assert await names(backend) == ["unencrypted"]


async def test_a_disk_that_is_nearly_full(backend, monkeypatch):
    monkeypatch.setattr(advice, "_MOST_FULL", -1)
    [found] = await backend.advice()
    assert (found.name, "% full" in found.finding) == ("opensearch.disk", True)


async def test_an_index_of_an_earlier_version_is_told_before_it_changes(
    own_server, prefix, monkeypatch
):
    async with open_backend(own_server.url, index_prefix=prefix) as backend:
        assert await backend.outdated() == []
    # As if a later version of the library added a field.
    added = {"added": {"type": "keyword"}}
    newer = replace(ITEMS, properties={**ITEMS.properties, **added}, migrations=(added,))
    for module in (advice, store):
        monkeypatch.setattr(module, "ITEMS", newer)
    backend = open_backend(own_server.url, index_prefix=prefix)
    [found] = await backend.outdated()
    assert (found.name, "schema 1, this one uses 2" in found.finding) == ("opensearch.schema", True)
    mapping = own_server.call("GET", f"/{prefix}items/_mapping")[f"{prefix}items-000001"]
    assert mapping["mappings"]["_meta"] == {"locus_memory": 1}
    async with backend:
        assert await backend.outdated() == []
    monkeypatch.undo()
    # And to the version of today, that one is newer.
    backend = open_backend(own_server.url, index_prefix=prefix)
    with pytest.raises(ConfigurationError, match="newer than 1"):
        await backend.open()
    await backend.close()


async def test_no_index_is_none_of_an_earlier_version(own_server, prefix):
    backend = open_backend(own_server.url, index_prefix=prefix)
    assert await backend.outdated() == []
    await backend.close()
