"""The newest items of many namespaces: in steps, in order, whatever is written meanwhile."""

from __future__ import annotations

from random import Random

import pytest

from locus_memory.backends.redis.items.spaces import Spaces
from locus_memory.backends.redis.lua import script
from locus_memory.backends.redis.search import newest as newest_module
from locus_memory.backends.redis.store import RedisStore
from locus_memory.testing.fakes import FakeClock

NS = ("all",)
ANY = {"missing": {"$exists": False}}


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture
async def store(redis_server, prefix, clock):
    async with RedisStore(redis_server.url, key_prefix=prefix, clock=clock) as opened:
        yield opened


@pytest.fixture
def small_steps(monkeypatch):
    """Let a few items take the steps that thousands do."""
    small = {"PAGE": 7, "_SKIPPED": 20, "_TOGETHER": 5, "_FEW": 2}
    for name, value in small.items():
        monkeypatch.setattr(newest_module, name, value)


@pytest.fixture
def between(monkeypatch):
    """Has something done after each step of a search, until it has nothing more to do."""
    pending, run_each = [], Spaces.run_each

    async def run(self, calls, spaces, **options):
        answers = await run_each(self, calls, spaces, **options)
        if pending:
            await pending.pop(0)()
        return answers

    monkeypatch.setattr(Spaces, "run_each", run)
    return pending


async def fill(store, spaces, items, seed=1):
    """Write items in any order and return their names, the newest first."""
    names = [((*NS, f"{space:05}"), f"{n}") for space in range(spaces) for n in range(items)]
    Random(seed).shuffle(names)
    await store.put_batch([(*name, 1) for name in names])
    return names[::-1]


def most_of(call):
    """Return how many rows a script was asked for; what is skipped comes before it."""
    keys, *rest = call.arguments
    return rest[keys + 2]


def names_of(items):
    return [(item.namespace, item.key) for item in items]


@pytest.mark.slow
async def test_no_script_reads_thousands_of_namespaces(store, raw, redis_server, calls):
    names = await fill(store, 2600, 2)
    client = raw(redis_server)
    client.config_resetstat()
    assert names_of(await store.search(NS, recursive=True)) == names[:10]
    pages = [call for call in calls if call.script == script("newest")]
    assert max(call.arguments[0] for call in pages) <= 500
    stats = client.info("commandstats")
    assert stats["cmdstat_zrevrangebyscore"]["calls"] <= 2600 + 2 * 10
    assert stats["cmdstat_hmget"]["calls"] <= 10


@pytest.mark.slow
async def test_reading_all_takes_no_more_than_a_look_at_each(store, calls):
    names = await fill(store, 2000, 3)
    assert names_of(await store.search(NS, None, 9999, filter=ANY, recursive=True)) == names
    pages = [call for call in calls if call.script == script("newest")]
    # Of namespaces and rows, a script reads as many as it is told to, once.
    counts = [call.arguments[0] + most_of(call) for call in pages]
    assert sum(counts) <= 4 * (2000 + len(names))


@pytest.mark.slow
@pytest.mark.parametrize("spaces", [1, 3, 40])
@pytest.mark.parametrize("condition", [None, ANY])
async def test_pages_are_exact(store, small_steps, spaces, condition):
    names = await fill(store, spaces, 120 // spaces)
    for limit in (1, 13, 50, 200):
        pages = [
            await store.search(NS, None, limit, offset=start, recursive=True, filter=condition)
            for start in range(0, len(names) + limit, limit)
        ]
        assert [name for page in pages for name in names_of(page)] == names


@pytest.mark.parametrize("seed", range(10))
async def test_what_is_there_all_the_time_is_found_once(store, small_steps, between, seed):
    """Items that are written again while a search reads do not slip through it."""
    random = Random(seed)
    names = await fill(store, 12, 8, seed)
    going = set(random.sample(names, 10))
    staying = [name for name in names if name not in going]

    async def disturb():
        await store.put(*random.choice(staying), 2)
        await store.put((*NS, f"{random.randrange(15):05}"), f"new {random.random()}", 1)
        if going:
            await store.delete(*going.pop())

    condition = random.choice([None, ANY])
    between += [disturb] * 12
    found = names_of(await store.search(NS, None, 500, filter=condition, recursive=True))
    assert len(found) == len(set(found))
    assert set(staying) <= set(found)


@pytest.mark.parametrize("offset", [0, 30, 90])
async def test_an_item_that_is_written_again_moves_to_the_top(store, small_steps, between, offset):
    names = await fill(store, 4, 30)
    moved = names[-1]

    async def move():
        await store.put(*moved, 2)

    between.append(move)
    found = await store.search(NS, None, 20, offset=offset, recursive=True)
    assert names_of(found) == [moved, *names[:-1]][offset : offset + 20]


async def test_what_expired_is_neither_skipped_nor_found(store, small_steps, clock):
    names = await fill(store, 6, 20)
    gone = set(names[::3])
    for name in gone:
        await store.put(*name, 1, ttl=5)
    left = [name for name in names if name not in gone]
    clock.advance(5)
    for offset in (0, 25, 70):
        found = await store.search(NS, None, 10, offset=offset, recursive=True)
        assert names_of(found) == left[offset : offset + 10]


@pytest.mark.slow
async def test_the_newest_of_many_on_a_cluster(three_masters, prefix, small_steps):
    async with RedisStore(three_masters.url, key_prefix=prefix) as store:
        names = [((*NS, f"{n % 17}"), f"{n}") for n in range(100)]
        for name in names:
            await store.put(*name, 1)
        wanted = names[::-1]
        pages = [
            await store.search(NS, None, 30, offset=start, recursive=True)
            for start in range(0, 120, 30)
        ]
        assert [name for page in pages for name in names_of(page)] == wanted
        assert names_of(await store.search(NS, None, 99, filter=ANY, recursive=True)) == wanted[:99]
        await store.delete_batch(names[:50])
        assert names_of(await store.search(NS, None, 99, recursive=True)) == wanted[:50]
