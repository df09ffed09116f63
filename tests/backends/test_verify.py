"""What `integrity.verify` finds in each kind of database."""

from __future__ import annotations

import pytest
from redis import Redis

from locus_memory.backends.postgresql.connection.connection import PostgreSQLPool
from locus_memory.integrity import verify
from locus_memory.registry import open_backend

HERE = ("users", "ada")


async def fill(backend):
    for number in range(120):
        await backend.store.put(HERE, f"k{number:03}", {"n": number})
    await backend.store.put(("notes", "é\x00"), "v\x01", [1])
    if backend.store.capabilities.semantic_search:
        await backend.store.put_with_embedding(("notes",), "v", {"n": 1}, [3.0, 4.0])
    else:
        await backend.store.put(("notes",), "v", {"n": 1})
    for thread in ("ann", "bob", "z" * 300):
        for number in range(5):
            await backend.checkpointer.save({"n": number, "w": "so it was " * 50}, thread)
    start = (await backend.checkpointer.list_checkpoints("ann"))[2]
    await backend.checkpointer.fork("ann", start, "b")


async def findings(backend, after=None):
    return [finding async for finding in verify(backend, after=after)]


def damaged(found):
    return [finding.place for finding in found if finding.reason is not None]


@pytest.mark.slow
async def test_what_is_intact_is_found_once(provider):
    url, options = provider
    async with open_backend(url, state_type=None, **options) as backend:
        await fill(backend)
        found = await findings(backend)
        assert damaged(found) == []
        kinds = [finding.kind for finding in found]
        assert (kinds.count("item"), kinds.count("checkpoint")) == (122, 18)
        assert len({finding.place for finding in found}) == 140
        for place in (0, 1, 77, 121, 122, 124, 127, 138, 139):
            rest = await findings(backend, found[place].cursor)
            assert [each.place for each in rest] == [each.place for each in found[place + 1 :]]


@pytest.fixture
def alter(provider, request):
    """Alters one item and one checkpoint of a database, by its own means."""
    url, options = provider

    async def redis():
        with Redis.from_url(url) as client:
            for name in client.keys(f"{options['key_prefix']}store:*:i:k077"):
                client.hset(name, "v", '{"n":78}')
            (heads,) = [
                name
                for name in client.keys(f"{options['key_prefix']}thread:*:heads")
                if b"k" not in name and client.zcard(name) == 3
            ]
            head, score = client.zrange(heads, 0, 0, withscores=True)[0]
            client.zrem(heads, head)
            client.zadd(heads, {head[:-2] + b" ]": score})

    async def postgresql():
        async with PostgreSQLPool(url, **options) as pool:
            await pool.execute("UPDATE {items} SET value = '{\"n\": 78}' WHERE key = 'k077'")
            await pool.execute(
                "UPDATE {checkpoints} SET level = 7 WHERE sequence = (SELECT sequence FROM"
                " {checkpoints} WHERE thread = (SELECT id FROM {threads} WHERE thread_id = 'b')"
                " ORDER BY sequence LIMIT 1)"
            )
            await pool.execute("DELETE FROM {vectors}")

    return {"redis": redis, "postg": postgresql}.get(url[:5])


async def test_one_that_is_damaged_hides_no_other(provider, alter):
    if alter is None:
        pytest.skip("its damages are those of the command line's tests")
    url, options = provider
    async with open_backend(url, state_type=None, **options) as backend:
        await fill(backend)
        await alter()
        found = await findings(backend)
        assert (*HERE, "k077") in damaged(found)
        # Without the first of a thread, those that build on it are lost as well.
        checkpoints = [finding for finding in found if finding.kind == "checkpoint"]
        assert {place[0] for place in damaged(checkpoints)} == {"b"}
        intact = [finding.kind for finding in found if finding.reason is None]
        assert (intact.count("item"), intact.count("checkpoint")) == (121, 15)
        lost = [finding.reason for finding in found if finding.kind == "database"]
        assert lost == (["postgresql: items without their vector: 1"] if url[:5] == "postg" else [])


async def test_names_that_go_round_in_circles_end_the_walk(monkeypatch):
    async with open_backend("memory", state_type=None) as backend:
        await backend.checkpointer.save({"n": 1}, "a")

        async def list_threads(limit=100, *, prefix=None, after=None):
            return ["a"]

        monkeypatch.setattr(backend.checkpointer, "list_threads", list_threads)
        found = await findings(backend)
        assert next(finding.place for finding in found if finding.reason is None)[0] == "a"
        assert "out of their order" in found[-1].reason
