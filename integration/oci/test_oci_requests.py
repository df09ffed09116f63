"""The requests of each verb, which the page on this backend lists: each is billed."""

from __future__ import annotations

import random

import pytest
from served import ADDRESS

from locus_memory.backends.oci import OCICheckpointer, OCIStore

NS = ("requests",)
WORDS = [
    *("the", "sloop", "lies", "in", "the", "old", "shed", "by", "the", "river", "and", "Ada"),
    *("asks", "whether", "it", "will", "float", "again", "this", "summer", "if", "the"),
    *("planks", "are", "caulked", "and", "painted", "with", "care"),
]


@pytest.fixture
def requests(service):
    """Return the requests by verb since the last call."""

    def counted():
        return {name: n for name, n in service.counts().items() if not name.isdigit()}

    return counted


@pytest.fixture
async def store(options):
    async with OCIStore(ADDRESS, **options) as store:
        yield store


async def test_the_store(store, options, requests):
    requests()
    await store.put(NS, "a", 1)
    # The first use asks the service for its time.
    assert requests() == {"PUT": 1, "GET": 1}
    await store.put(NS, "a", 2)
    assert requests() == {"PUT": 1}
    await store.put(NS, "a", 2, if_version=2)
    assert requests() == {"PUT": 1}
    await store.get(NS, "a")
    await store.exists(NS, "a")
    assert requests() == {"GET": 2}
    await store.delete(NS, "a")
    assert requests() == {"DELETE": 1}
    await store.put_batch([(NS, f"{n:04}", n) for n in range(1100)])
    assert requests() == {"PUT": 1100}
    assert len(await store.list_keys(NS, 2000)) == 1100
    assert requests() == {"LIST": 2}
    assert len(await store.scan(NS, 10)) == 10
    assert requests() == {"LIST": 1, "GET": 10}
    assert await store.list_namespaces() == [NS]
    assert requests()["LIST"] <= 2
    async with OCIStore(ADDRESS, **options) as other:
        requests()
        await other.put(NS, "0001", 1)
        assert requests() == {"PUT": 2, "GET": 2}
        await other.put(NS, "0002", 1, if_version=1)
        assert requests() == {"PUT": 1, "GET": 1}
        await other.delete(NS, "0003")
        assert requests() == {"GET": 1, "DELETE": 1}
    assert await store.clear_namespace(NS) == 1099
    assert requests() == {"LIST": 2, "DELETE": 1099}


async def test_items_that_expire_are_the_only_ones_that_a_list_reads(store, requests):
    for n in range(5):
        await store.put(NS, f"k{n}", n)
        await store.put(NS, f"t{n}", n, ttl=1000)
    requests()
    assert len(await store.list_keys(NS)) == 10
    assert requests() == {"LIST": 1, "GET": 5}


async def test_the_list_of_namespaces_skips_what_is_long(store, requests):
    await store.put_batch([((f"n{n}",), f"{k:04}", k) for n in range(3) for k in range(1001)])
    await store.put_batch([(("z", f"{n:03}"), "k", n) for n in range(300)])
    requests()
    assert len(await store.list_namespaces(limit=1000)) == 303
    assert requests()["LIST"] <= 5
    assert await store.list_namespaces(max_depth=1) == [("n0",), ("n1",), ("n2",), ("z",)]
    assert requests()["LIST"] <= 5


def turn(number):
    drawn = random.Random(number)

    def text(count):
        return " ".join(drawn.choice(WORDS) for _ in range(count))

    question = {"role": "user", "content": f"{number} {text(30)}"}
    return [question, {"role": "assistant", "content": text(90)}]


async def test_a_thousand_turns(options, requests):
    messages = []
    requests()
    async with OCICheckpointer(ADDRESS, **options, state_type=None) as checkpointer:
        await checkpointer.open()
        requests()
        most = 0
        totals = {}
        for number in range(1000):
            messages = [*messages, *turn(number)]
            await checkpointer.save({"messages": messages}, "t", f"{number:04}")
            used = requests()
            assert used.get("PUT", 0) <= 2
            most = max(most, sum(used.values()) if number else 0)
            totals = {name: totals.get(name, 0) + used.get(name, 0) for name in {*totals, *used}}
        assert totals["PUT"] <= 1035, totals
        assert totals["GET"] == 1
        assert totals["DELETE"] <= 3
        assert most <= 3
        await checkpointer.load("t")
        assert requests() == {"GET": 1}
        await checkpointer.list_checkpoints("t", 1000)
        assert requests() == {"GET": 1}
    async with OCICheckpointer(ADDRESS, **options, state_type=None) as checkpointer:
        assert (await checkpointer.load("t")) == {"messages": messages}
        assert requests()["GET"] <= 30
        await checkpointer.load("t")
        assert requests() == {"GET": 1}
        await checkpointer.fork("t", "0500", "u")
        assert requests()["PUT"] == 1
        assert await checkpointer.prune("t", keep_last=10) == 990
        assert requests()["PUT"] <= 3
        for name in ("0990", "0999"):
            assert len((await checkpointer.load("t", name))["messages"]) == 2 * (int(name) + 1)
        assert len((await checkpointer.load("u"))["messages"]) == 2 * 501
