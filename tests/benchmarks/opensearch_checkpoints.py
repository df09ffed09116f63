"""The cost of checkpoints on OpenSearch against the bare requests of opensearch-py.

A bare save indexes the compressed record of the same turn in one request; a bare load reads the
same documents by their ids. Both run in turn on one server. `python opensearch_checkpoints.py
[hosts]` uses a server that runs; without an address it starts one.
"""

from __future__ import annotations

import asyncio
import gc
import sys
import time
from base64 import b64encode
from contextlib import nullcontext
from statistics import median
from typing import Any

import orjson
from conversations import Talk
from opensearchpy import AsyncOpenSearch

from locus_memory.backends.opensearch import OpenSearchCheckpointer, OpenSearchConnection
from locus_memory.testing.servers import OpenSearchServer

TURNS = 200
ROUNDS = 60
CROWD = 50


def show(name: str, ours: float, bare: float, unit: str) -> None:
    print(f"{name:34} {ours:9.2f} {unit:8} bare {bare:9.2f}  ratio {ours / bare:6.3f}")


async def saves(checkpointer: OpenSearchCheckpointer, client: AsyncOpenSearch) -> None:
    """Save the turns of a conversation, and compare the last ones with bare requests."""
    ours: list[float] = []
    bare: list[float] = []
    full = 0
    states = list(Talk().states(TURNS + ROUNDS))
    for number, state in enumerate(states):
        full += len(orjson.dumps(state)) if number < TURNS else 0
        start = time.perf_counter()
        await checkpointer.save(state, "talk")
        taken = time.perf_counter() - start
        if number < TURNS:
            continue
        ours.append(taken)
        record = await checkpointer.storage.retrieve("talk")
        assert record is not None
        body = {"body": {"payload": b64encode(record.payload).decode()}}
        start = time.perf_counter()
        await client.index(index="bare", id=f"r{number}", body=body)
        bare.append(time.perf_counter() - start)
    show(f"save about turn {TURNS}", median(ours) * 1e3, median(bare) * 1e3, "ms")


async def loads(checkpointer: OpenSearchCheckpointer, client: AsyncOpenSearch) -> None:
    chain = await checkpointer.storage.retrieve_chain("talk")
    for number, record in enumerate(chain):
        body = {"body": {"payload": b64encode(record.payload).decode()}}
        await client.index(index="bare", id=f"c{number}", body=body)
    docs = {"docs": [{"_id": f"c{number}"} for number in range(len(chain))]}
    timed: tuple[list[float], list[float]] = ([], [])
    for _ in range(ROUNDS):
        start = time.perf_counter()
        await checkpointer.load("talk")
        between = time.perf_counter()
        await client.mget(index="bare", body=docs)
        timed[0].append(between - start)
        timed[1].append(time.perf_counter() - between)
    ours, bare = (median(each) * 1e3 for each in timed)
    show(f"load of a chain of {len(chain)}", ours, bare, "ms")


async def sizes(connection: OpenSearchConnection, checkpointer: OpenSearchCheckpointer) -> None:
    full = 0
    for state in Talk().states(TURNS):
        full += len(orjson.dumps(state))
        await checkpointer.save(state, "sized")
    path = "/bench-checkpoints/_forcemerge"
    params = {"max_num_segments": 1, "flush": "true"}
    await connection.request("POST", path, params=params, again=True)
    await connection.request("POST", "/bench-checkpoints/_refresh", again=True)
    stats = await connection.request("GET", "/bench-checkpoints/_stats/store", again=True)
    size = stats["_all"]["primaries"]["store"]["size_in_bytes"]
    show(f"bytes of {TURNS} checkpoints, merged", size / 1e3, full / 1e3, "kB")


async def crowd(checkpointer: OpenSearchCheckpointer, client: AsyncOpenSearch) -> None:
    async def many(work: Any, count: int) -> float:
        numbers = iter(range(count))

        async def worker(thread: int) -> None:
            for number in numbers:
                await work(thread, number)

        start = time.perf_counter()
        await asyncio.gather(*(worker(thread) for thread in range(CROWD)))
        return count / (time.perf_counter() - start)

    body = {"body": {"payload": "x" * 400}}
    for thread in range(CROWD):
        await checkpointer.save({"n": 0}, f"crowd{thread}")
    ours = await many(lambda t, n: checkpointer.save({"n": n}, f"crowd{t}"), 2_000)
    bare = await many(lambda t, n: client.index(index="bare", id=f"{t}-{n}", body=body), 2_000)
    show(f"saves a second, {CROWD} threads", ours, bare, "")


async def run(hosts: str) -> None:
    async with (
        OpenSearchConnection(hosts, index_prefix="bench-") as connection,
        AsyncOpenSearch(hosts) as client,
    ):
        await connection.request("DELETE", "/bench-*,bare", params={"ignore_unavailable": "true"})
        body = {
            "settings": {"number_of_shards": 1, "number_of_replicas": 0},
            "mappings": {
                "dynamic": False,
                "properties": {"body": {"type": "object", "enabled": False}},
            },
        }
        await client.indices.create(index="bare", body=body)
        made: OpenSearchCheckpointer[Any] = OpenSearchCheckpointer(
            client=connection, state_type=None
        )
        async with made as checkpointer:
            await sizes(connection, checkpointer)
            gc.collect()
            await saves(checkpointer, client)
            await loads(checkpointer, client)
            await crowd(checkpointer, client)
        await connection.request("DELETE", "/bench-*,bare", params={"ignore_unavailable": "true"})


def main() -> None:
    server = nullcontext(None) if len(sys.argv) > 1 else OpenSearchServer()
    with server as started:
        hosts = sys.argv[1] if started is None else started.address
        asyncio.run(run(hosts.removeprefix("opensearch:")))


if __name__ == "__main__":
    main()
