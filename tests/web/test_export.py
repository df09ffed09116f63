"""Exports are streams: a line is sent as soon as it is read, and one that breaks off says so."""

from __future__ import annotations

import asyncio
import json

import pytest

from locus_memory import LLMMemoryManager
from locus_memory.memory import Memory
from locus_memory.registry import open_backend
from locus_memory.web import make_app

FACTS = 40
SCOPE = {
    "type": "http",
    "http_version": "1.1",
    "method": "GET",
    "scheme": "http",
    "path": "/api/v1/export/facts",
    "root_path": "",
    "headers": [(b"host", b"127.0.0.1")],
}


async def parts_of(backend, query=b"", on_first=None):
    """The lines of an export, each as it is sent; a client of HTTP would join them."""
    sent = []

    async def receive():
        return await asyncio.Event().wait()

    async def send(message):
        if message.get("body"):
            sent.append(message["body"])
            if len(sent) == 1 and on_first is not None:
                await on_first()

    await make_app(backend)({**SCOPE, "query_string": query}, receive, send)
    return sent


async def test_each_fact_is_sent_by_itself(backend):
    manager = LLMMemoryManager(backend.store).for_user("ada")
    await manager.save([Memory("user", f"k{n:03}", f"Ada has {n} cats.") for n in range(FACTS)])
    parts = await parts_of(backend, b"user=ada")
    assert [json.loads(part)["key"] for part in parts] == [f"k{n:03}" for n in range(FACTS)]


@pytest.mark.parametrize("database", ["memory", "sqlite"])
async def test_an_export_that_breaks_off_ends_with_an_error(database, tmp_path):
    where = database if database == "memory" else f"sqlite:{tmp_path}/a.db"
    async with open_backend(where, state_type=None) as backend:
        kinds = ("user", "feedback", "project")
        await LLMMemoryManager(backend.store).save(Memory(each, "k", "It rains.") for each in kinds)
        first, *rest = await parts_of(backend, on_first=backend.close)
    assert json.loads(first)["content"] == "It rains."
    assert json.loads(rest[-1])["error"]["type"] == "BackendClosedError"
    assert len(rest) < len(kinds)
