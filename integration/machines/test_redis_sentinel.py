"""A primary with two replicas that three sentinels watch, and a failover."""

from __future__ import annotations

import pytest

from integration.machines.redis_servers import watched
from locus_memory.errors import BackendUnavailableError, BackendWriteError, ConfigurationError
from locus_memory.registry import get_store, open_backend


@pytest.fixture(scope="module")
def six_servers():
    with watched() as made:
        yield made


async def test_both_contracts_at_the_primary_that_the_sentinels_name(six_servers):
    async with open_backend(six_servers.url, state_type=None) as backend:
        assert await backend.store.put(("n",), "1", {"text": "a rose"}) == 1
        assert [each.key for each in await backend.store.search(("n",), "rose")] == ["1"]
        await backend.checkpointer.save({"n": 1}, "thread")
        assert await backend.checkpointer.load("thread") == {"n": 1}
        assert backend.store.capabilities.transactions


async def test_an_unknown_service_is_told(six_servers):
    store = get_store(six_servers.url.replace("mymaster", "yours"))
    with pytest.raises(BackendUnavailableError, match="no sentinel knows a primary"):
        await store.get(("n",), "1")
    await store.close()


async def test_the_primary_is_killed_and_nothing_confirmed_is_lost(load_on):
    with watched() as servers:
        # Both replicas confirm: the sentinels may choose either.
        options = {"wait_replicas": 2, "wait_timeout": 0.5}
        async with get_store(servers.url, **options) as safe, get_store(servers.url) as fast:
            confirmed = load_on(safe)
            await confirmed.goes_on()
            servers.servers[0].kill()
            servers.sentinels[0].kill()
            await confirmed.stop()
            load = load_on(fast)
            await load.everywhere()
            await load.stop()
            kinds = {type(each) for each in (*confirmed.failures, *load.failures)}
            assert kinds <= {BackendUnavailableError, BackendWriteError}
            assert await confirmed.lost() == set()
            # With the killed one back, as a replica, two confirm again.
            servers.servers[0].start()
            again = load_on(safe)
            await again.everywhere()
            await again.stop()
            assert await again.lost() == set()


def test_a_url_without_a_service_is_refused():
    with pytest.raises(ConfigurationError, match="the service is missing"):
        get_store("redis+sentinel://localhost:26379")
