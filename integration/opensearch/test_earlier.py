"""A database written by an earlier version opens: its requests are sent again, as they were."""

from __future__ import annotations

import json
from pathlib import Path

from integration.earlier import check_items, check_threads, check_writes, read
from locus_memory.backends.opensearch import OpenSearchConnection
from locus_memory.registry import open_backend
from locus_memory.testing import FakeClock

PREFIX = "earlier-"


async def test_a_database_written_by_the_version_before_opens(one_opensearch, prefix):
    earlier = read(Path(__file__).parent)
    clock, expected = FakeClock(earlier["clock"]), earlier["expected"]
    hosts = one_opensearch.partition(":")[2]
    async with OpenSearchConnection(hosts, index_prefix=prefix) as connection:
        for method, path, params, body, is_lines in earlier["requests"]:
            sent = None if body is None else body.replace(PREFIX, prefix)
            told = json.loads(sent) if sent and not is_lines else sent and sent.encode()
            await connection.request(method, path.replace(PREFIX, prefix), told, params=params)
        await connection.request("POST", f"/{prefix}*/_refresh")
        options = {"clock": clock, "state_type": None}
        async with open_backend(one_opensearch, index_prefix=prefix, **options) as backend:
            assert await backend.outdated() == []
            await check_items(backend.store, expected["items"])
            await check_threads(backend.checkpointer, expected["threads"])
            for words, keys in expected["searches"].items():
                found = [
                    item.key
                    for namespace in (("users",), ("日本",))
                    for item in await backend.store.search(namespace, words, recursive=True)
                ]
                assert found == keys
            hits = await backend.store.search_by_embedding(("vectors",), [1.0, 0.6, 0.25])
            assert [hit.item.key for hit in hits] == expected["nearest"]
            await check_writes(backend, expected["items"], expected["threads"])
        await connection.request("DELETE", f"/{prefix}*")
