"""A time of life ends by one clock, whatever the clocks of the machines say."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys

import pytest

from locus_memory import VersionConflictError, get_store

NS = ("locks",)
AHEAD = 600.0

# A process whose clock is ten minutes ahead, or behind.
PROCESS = """
import asyncio, json, sys, time

real, shift = time.time, float(sys.argv[1])
time.time = lambda: real() + shift

from locus_memory import VersionConflictError, get_store

async def main(url, options):
    async with get_store(url, **options) as store:
        found = {"seen": await store.get(("locks",), "lease")}
        try:
            await store.put(("locks",), "lease", "other", ttl=300, if_version=0)
            found["taken"] = True
        except VersionConflictError:
            found["taken"] = False
        found["keys"] = await store.list_keys(("locks",))
        found["exists"] = await store.exists(("locks",), "lease")
        found["newest"] = [each.key for each in await store.search(("locks",))]
        found["batch"] = len(await store.get_batch([(("locks",), "lease")]))
        await store.put(("locks",), "other", 1)
        await store.compact()
    print(json.dumps(found))

asyncio.run(main(sys.argv[2], json.loads(sys.argv[3])))
"""


def process(shift, url, options):
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PROCESS, str(shift), url, json.dumps(options)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(params=["postgresql", "redis", "valkey"])
def database(request, tmp_path):
    server = request.getfixturevalue(f"{request.param}_server")
    if request.param == "postgresql":
        return server.url, {"schema": request.getfixturevalue("schema_of")(tmp_path)}
    return server.url, {"key_prefix": f"{tmp_path.name}:"}


@pytest.mark.slow
@pytest.mark.parametrize("shift", [AHEAD, -AHEAD])
async def test_a_live_lock_stays(database, shift):
    url, options = database
    async with get_store(url, **options) as store:
        await store.put(NS, "lease", "mine", ttl=300, if_version=0)
        found = process(shift, url, options)
        assert found == {
            "seen": "mine",
            "taken": False,
            "keys": ["lease"],
            "exists": True,
            "newest": ["lease"],
            "batch": 1,
        }
        # A write of a process that is ahead deletes nothing for good.
        assert await store.get(NS, "lease") == "mine"
        item = await store.get_item(NS, "lease")
        assert 299 < (item.expires_at - item.created_at).total_seconds() < 301
        assert item.version == 1
        with pytest.raises(VersionConflictError):
            await store.put(NS, "lease", "again", if_version=0)


async def test_what_has_expired_is_gone_for_all(database):
    url, options = database
    async with get_store(url, **options) as store:
        await store.put(NS, "short", 1, ttl=0.001)
        await store.put_batch([(NS, "a", 1), (NS, "b", 2)])
        # The server has no clock that a test could move.
        await asyncio.sleep(0.01)
        assert await store.get(NS, "short") is None
        assert not await store.exists(NS, "short")
        assert await store.list_keys(NS) == ["a", "b"]
        assert await store.put(NS, "short", 2, ttl=1000, if_version=0) == 1
        item = await store.get_item(NS, "short")
        assert item.value == 2
        assert item.updated_at >= item.created_at


async def test_a_moment_never_goes_back(database):
    """The clock of one process was ahead for a write; the next one is later all the same."""
    url, options = database
    async with (
        get_store(url, **options, clock=lambda: 2e9) as ahead,
        get_store(url, **options, clock=lambda: 1.9e9) as behind,
    ):
        await ahead.put(NS, "k", 1)
        await behind.put(NS, "k", 2)
        assert await behind.put(NS, "k", 3, if_version=2) == 3
        await behind.put_batch([(NS, "k", 4), (NS, "l", 1)])
        item = await behind.get_item(NS, "k")
        assert item.updated_at == item.created_at
        assert item.updated_at.timestamp() == 2e9
        assert item.version == 4
