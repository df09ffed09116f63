"""A Redis Cluster of three primaries with a replica each: both suites, failures, moved slots."""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import contextmanager

import pytest
from redis.crc import key_slot

from integration.machines.conftest import PATIENCE
from integration.machines.redis_servers import ask, cluster, facts
from locus_memory.backends.redis.store import RedisStore
from locus_memory.errors import BackendUnavailableError, StoreCapabilityError
from locus_memory.registry import get_checkpointer, get_store
from locus_memory.store.item import Delete
from locus_memory.testing import CheckpointerConformance, StoreConformance
from locus_memory.testing.servers import RedisServer, ValkeyServer


@pytest.fixture(scope="module")
def six_servers():
    with cluster() as made:
        yield made


@pytest.fixture
def own_cluster():
    with cluster() as made:
        yield made


class OnACluster:
    @pytest.fixture(autouse=True)
    def server(self, six_servers, name_of):
        self.url, self.name_of = six_servers.url, name_of


class TestStore(OnACluster, StoreConformance):
    def make_store(self, clock, tmp_path):
        return get_store(self.url, key_prefix=self.name_of(tmp_path), clock=clock)


class TestCheckpointer(OnACluster, CheckpointerConformance):
    def make_checkpointer(self, clock, tmp_path, **options):
        return get_checkpointer(self.url, key_prefix=self.name_of(tmp_path), clock=clock, **options)


async def test_a_verb_over_many_namespaces_asks_all_servers(six_servers):
    async with get_store(six_servers.url, key_prefix="many:") as store:
        words = [f"rose {number}" for number in range(30)]
        for number, text in enumerate(words):
            vector = [1.0, number / 30]
            await store.put_with_embedding(("users", str(number)), "note", text, vector)
        found = await store.search(("users",), "rose", 100, recursive=True)
        assert {item.value for item in found} == set(words)
        near = await store.search_by_embedding(("users",), [1.0, 0.0], 3, recursive=True)
        assert [each.item.value for each in near] == words[:3]
        assert len(await store.list_namespaces(("users",))) == 30
        with pytest.raises(StoreCapabilityError, match="put_batch and delete_batch"):
            await store.write_batch(
                [Delete(namespace=("a",), key="1"), Delete(namespace=("b",), key="1")]
            )
        assert await store.clear_namespace(("users",), recursive=True) == 30


async def test_a_primary_is_killed_and_nothing_confirmed_is_lost(own_cluster, load_on):
    killed, replica = own_cluster.primaries[0], own_cluster.replicas[0]
    async with (
        get_store(own_cluster.url, wait_replicas=1, wait_timeout=0.5) as safe,
        get_store(own_cluster.url, key_prefix="fast:") as fast,
    ):
        confirmed, plain = load_on(safe, writers=8), load_on(fast, writers=8)
        await confirmed.goes_on()
        await plain.goes_on()
        await asyncio.to_thread(killed.kill)
        # Some of the writers write to it: they go on once its replica has taken over.
        await plain.everywhere()
        await plain.stop()
        assert {type(each) for each in plain.failures} == {BackendUnavailableError}
        assert facts(replica, "INFO", "replication")["role"] == "master"
        # Nobody else can confirm a write until the killed one is back, as a replica.
        killed.start()
        await confirmed.everywhere()
        await confirmed.stop()
        assert {type(each) for each in confirmed.failures} == {BackendUnavailableError}
        assert await confirmed.lost() == set()


async def test_threads_outlive_a_primary(own_cluster):
    names = [f"t{number}" for number in range(30)]
    async with get_checkpointer(own_cluster.url, wait_replicas=1, state_type=None) as safe:
        for name in names:
            await safe.save({"n": 0}, name)
    async with get_checkpointer(own_cluster.url, state_type=None) as after:
        await after.load("t0")
        own_cluster.primaries[1].kill()
        for name in names:
            await asyncio.wait_for(resumed(after, name), PATIENCE)
        assert sorted(await after.list_threads()) == sorted(names)


async def resumed(checkpointer, name):
    """Load a thread and save it again, once its servers answer."""
    while True:
        try:
            assert (await checkpointer.load(name))["n"] in {0, 1}
            await checkpointer.save({"n": 1}, name)
            assert await checkpointer.load(name) == {"n": 1}
        except BackendUnavailableError:
            await asyncio.sleep(0.02)
        else:
            return


@contextmanager
def frozen(server):
    os.kill(server.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(server.pid, signal.SIGCONT)


async def test_a_write_that_no_replica_has_is_not_acknowledged(six_servers):
    async with RedisStore(
        six_servers.url, key_prefix="wait:", wait_replicas=1, wait_timeout=0.2
    ) as store:
        [mine] = [f"{n}" for n in range(99) if owner_of(store, six_servers, f"{n}") == 0][:1]
        await store.put((mine,), "key", 1)
        with frozen(six_servers.replicas[0]):
            for _ in range(2):
                with pytest.raises(BackendUnavailableError, match="0 of 1 replicas confirmed it"):
                    await store.put((mine,), "key", 2)
                # To delete what is not there writes nothing, and still what it saw is not safe.
                with pytest.raises(BackendUnavailableError, match="0 of 1 replicas"):
                    await store.delete((mine,), "key")
        await store.put((mine,), "key", 3)
        assert await store.get((mine,), "key") == 3


def owner_of(store, servers, name):
    slot = key_slot(store._spaces.space((name,)).base)
    return servers.primaries.index(servers.owner(slot))


@pytest.mark.parametrize("kind", [RedisServer, ValkeyServer])
async def test_slots_are_moved_under_load(kind, load_on):
    with cluster(kind) as servers:
        async with RedisStore(servers.url) as store:
            load = load_on(store, writers=2)
            await load.goes_on()
            for number in range(2):
                slot = key_slot(store._spaces.space(("load", str(number))).base)
                source = servers.owner(slot)
                target = servers.primaries[servers.primaries.index(source) - 1]
                await asyncio.to_thread(servers.move, slot, source, target)
                assert servers.owner(slot) is target
                await load.everywhere()
            await load.stop()
            assert load.failures == []
            assert await load.lost() == set()
            for number in range(2):
                namespace = ("load", str(number))
                items = await store.scan(namespace, 10_000)
                assert {item.version for item in items} == {1}
                found = await store.search(namespace, "note", 10_000)
                assert len(found) == len(items)


async def test_a_slot_that_stays_half_moved_is_waited_for_and_told(six_servers):
    options = {"key_prefix": "half:", "command_timeout": 0.5}
    async with RedisStore(six_servers.url, **options) as store:
        await store.put(("n",), "1", "first")
        slot = key_slot(store._spaces.space(("n",)).base)
        source = six_servers.owner(slot)
        target = next(each for each in six_servers.primaries if each is not source)
        name = ask(source, "CLUSTER MYID")
        ask(target, "CLUSTER SETSLOT", slot, "IMPORTING", name)
        ask(source, "CLUSTER SETSLOT", slot, "MIGRATING", ask(target, "CLUSTER MYID"))
        try:
            with pytest.raises(BackendUnavailableError, match="still being moved"):
                await store.put(("n",), "2", "second")
            assert await store.get(("n",), "1") == "first"
        finally:
            for server in (source, target):
                ask(server, "CLUSTER SETSLOT", slot, "STABLE")
        await store.put(("n",), "2", "second")
        assert await store.list_keys(("n",)) == ["1", "2"]
