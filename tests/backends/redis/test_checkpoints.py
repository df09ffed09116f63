"""What only the checkpoints of Redis can do wrong."""

from __future__ import annotations

import asyncio
from itertools import count

import orjson
import pytest

from locus_memory.backends.redis.backend import RedisBackend
from locus_memory.backends.redis.checkpoints import RedisCheckpointer
from locus_memory.backends.redis.connection.connection import RedisConnection
from locus_memory.backends.redis.records import registry_key, thread_keys
from locus_memory.checkpoint.record import Record, RecordHead
from locus_memory.checkpoint.storage import StaleChainError
from locus_memory.errors import (
    CheckpointConflictError,
    CheckpointCorruptError,
    ConfigurationError,
)


@pytest.fixture
async def checkpointer(connection):
    """A checkpointer over the connection of the test."""
    return RedisCheckpointer(client=connection, state_type=None)


@pytest.fixture
def keys(connection):
    """Returns the keys of a thread."""
    return lambda thread: thread_keys(connection.key(), thread).all


def record(name, revision, base=None, *, thread="t", document=b"{}"):
    head = RecordHead(
        thread_id=thread,
        checkpoint_id=name,
        revision=revision,
        base=base,
        level=0,
        sequence=0,
        created_at=1.5,
        metadata={"of": name},
        size=0,
        stored_size=0,
    )
    return Record.pack(document, head, 6)


def talk(turns):
    messages = [
        {"role": role, "content": " ".join(f"{role}{turn * word}" for word in range(99))}
        for turn in range(turns)
        for role in ("user", "assistant")
    ]
    return {"messages": messages, "turn": turns}


class TestDamage:
    async def fill(self, checkpointer):
        for number in range(4):
            state = {"said": ["x" * 30] * number, "n": number}
            await checkpointer.save(state, "t", f"c{number}", {"step": number})
        await checkpointer.save({"n": 0}, "other", "c0")

    async def refuses(self, checkpointer, *names):
        for name in names:
            for call in (checkpointer.load("t", name), checkpointer.get_metadata("t", name)):
                with pytest.raises(CheckpointCorruptError, match="'t'"):
                    await call

    @pytest.mark.slow
    async def test_a_flipped_bit_of_a_head(self, checkpointer, connection, keys):
        await self.fill(checkpointer)
        heads = keys("t")[0]
        true = await checkpointer.list_with_metadata("t")
        (whole,) = await connection.execute("ZRANGE", heads, 2, 2)
        for bit in range(8 * len(whole)):
            damaged = bytearray(whole)
            damaged[bit // 8] ^= 1 << bit % 8
            await connection.execute("ZREM", heads, whole)
            await connection.execute("ZADD", heads, 3, bytes(damaged))
            try:
                # The last digit of a time may have a neighbour that reads as the same number.
                assert await checkpointer.list_with_metadata("t") == true
            except CheckpointCorruptError:
                with pytest.raises(CheckpointCorruptError, match="'t'"):
                    await checkpointer.load("t", "c2")
            await connection.execute("ZREM", heads, bytes(damaged))
            await connection.execute("ZADD", heads, 3, whole)
        assert await checkpointer.load("t") == {"said": ["x" * 30] * 3, "n": 3}

    async def test_a_damaged_head_stops_what_needs_it_and_nothing_else(
        self, checkpointer, connection, keys
    ):
        await self.fill(checkpointer)
        heads = keys("t")[0]
        (newest,) = await connection.execute("ZRANGE", heads, 3, 3)
        for damaged in (b"", b"c", newest[:15], newest[:19], newest[:25], newest + b" 7"):
            await connection.execute("ZREMRANGEBYSCORE", heads, 4, 4)
            await connection.execute("ZADD", heads, 4, damaged)
            await self.refuses(checkpointer, None, "c3")
            for call in (
                checkpointer.list_checkpoints("t"),
                checkpointer.get_storage_stats("t"),
                checkpointer.query_by_metadata({}),
                checkpointer.prune("t", keep_last=1),
                checkpointer.copy_thread("t", "copy"),
            ):
                with pytest.raises(CheckpointCorruptError, match="'t'"):
                    await call
            assert await checkpointer.load("other") == {"n": 0}
        await checkpointer.save({"n": 9}, "t")
        assert await checkpointer.load("t") == {"n": 9}
        assert await checkpointer.delete("t")
        assert await checkpointer.list_threads() == ["other"]

    async def test_a_damaged_payload(self, checkpointer, connection, keys):
        await self.fill(checkpointer)
        _, payloads, *_ = keys("t")
        (head,) = await connection.execute("ZRANGE", keys("t")[0], 1, 1)
        whole = await connection.execute("HGET", payloads, head[:8])
        changed = [
            whole[:n] + bytes([whole[n] ^ 16]) + whole[n + 1 :] for n in range(8, len(whole))
        ]
        for damaged in (*changed, b"", whole[:5], whole[:8], whole[:9], whole[:-1], whole + b"x"):
            await connection.execute("HSET", payloads, head[:8], damaged)
            for name in ("c1", "c2", "c3"):
                with pytest.raises(CheckpointCorruptError, match="'t'"):
                    await checkpointer.load("t", name)
            assert await checkpointer.load("t", "c0") == {"said": [], "n": 0}
            assert await checkpointer.list_checkpoints("t") == ["c3", "c2", "c1", "c0"]
        await connection.execute("HDEL", payloads, head[:8])
        with pytest.raises(CheckpointCorruptError, match="missing"):
            await checkpointer.load("t", "c1")
        with pytest.raises(CheckpointCorruptError, match="missing"):
            await checkpointer.load("t", "c3")

    async def test_a_payload_that_leads_elsewhere(self, checkpointer, connection, keys):
        await self.fill(checkpointer)
        heads, payloads, *_ = keys("t")
        found = await connection.execute("ZRANGE", heads, 0, -1)
        first, second = [await connection.execute("HGET", payloads, h[:8]) for h in found[:2]]
        await connection.execute("HSET", payloads, found[1][:8], first[:8] + second[8:])
        with pytest.raises(CheckpointCorruptError, match="builds on is missing"):
            await checkpointer.load("t", "c2")

    async def test_a_name_that_leads_elsewhere(self, checkpointer, connection, keys):
        await self.fill(checkpointer)
        names = keys("t")[2]
        await connection.execute("HSET", names, "c1", 3, "c2", 99, "ghost", 1)
        with pytest.raises(CheckpointCorruptError, match="found as 'c1'"):
            await checkpointer.load("t", "c1")
        await self.refuses(checkpointer, "c1", "c2", "ghost")

    async def test_a_damaged_name_of_a_thread(self, checkpointer, connection, keys):
        await self.fill(checkpointer)
        registry = keys("t")[3]
        (member,) = await connection.execute("ZRANGE", registry, 0, -1)
        for damaged in (b"\xff", b"t\x02\t", b"t\x02"):
            await connection.execute("ZADD", registry, 0, damaged + member[1:])
            for call in (checkpointer.list_threads(), checkpointer.query_by_metadata({})):
                with pytest.raises(CheckpointCorruptError, match="its name is damaged"):
                    await call
            await connection.execute("ZREM", registry, damaged + member[1:])
        assert await checkpointer.list_threads() == ["other", "t"]


class TestExpiry:
    async def test_all_keys_of_a_thread_go_together(self, redis_server, prefix, connection, keys):
        options = {"key_prefix": prefix, "state_type": None}
        async with RedisCheckpointer(redis_server.url, ttl=60, **options) as brief:
            assert brief.capabilities.ttl
            for number in range(3):
                await brief.save({"n": number}, "t", f"c{number}")
            moments = {await connection.execute("PEXPIRETIME", key) for key in keys("t")[:3]}
            assert len(moments) == 1
            (moment,) = moments
            (now, _) = await connection.execute("TIME")
            assert int(now) * 1000 + 55_000 < moment <= int(now) * 1000 + 61_000
            assert await connection.execute("TTL", keys("t")[3]) == -1
            await brief.copy_thread("t", "copy")
            assert await connection.execute("PTTL", keys("copy")[0]) > 0
        async with RedisCheckpointer(redis_server.url, **options) as lasting:
            assert not lasting.capabilities.ttl
            await lasting.save({"n": 3}, "t")
            assert [await connection.execute("TTL", key) for key in keys("t")[:3]] == [-1] * 3

    async def test_an_expired_thread_is_not_listed_and_starts_anew(
        self, checkpointer, connection, keys
    ):
        for thread in ("gone", "stays"):
            await checkpointer.save({"n": 1}, thread, "c1")
            await checkpointer.save({"n": 2}, thread, "c2")
        for key in keys("gone")[:3]:
            await connection.execute("PEXPIREAT", key, 1)
        assert await checkpointer.list_threads() == ["stays"]
        assert await connection.execute("ZCARD", keys("gone")[3]) == 0
        assert await checkpointer.load("gone") is None
        assert await checkpointer.query_by_metadata({}, 10) != []
        await checkpointer.save({"n": 3}, "gone", "c3", expected_parent=None)
        assert await checkpointer.list_checkpoints("gone") == ["c3"]
        assert await checkpointer.list_threads() == ["gone", "stays"]

    @pytest.mark.parametrize(
        "ttl", ["5", True, False, b"5", [5], 0, -1, 0.0001, 1e12, float("inf"), float("nan")]
    )
    def test_a_ttl_that_cannot_work(self, ttl):
        with pytest.raises(ConfigurationError, match="ttl"):
            RedisCheckpointer(ttl=ttl)


class TestThreads:
    @pytest.mark.slow
    async def test_pages_of_many_threads_in_one_shard(self, checkpointer, connection):
        shard = registry_key(connection.key(), 0)
        every = (f"thread-{number}" for number in count())
        crowded = [
            name
            for name, _ in zip(every, range(12_000), strict=False)
            if thread_keys(connection.key(), name).all[3] == shard
        ]
        names = sorted([*crowded, *(f"other-{number}" for number in range(60))])
        for name in names:
            await checkpointer.storage.store(record("c", 1, thread=name))
        for limit in (1, 7, 100, 10**20):
            listed: list[str] = []
            while page := await checkpointer.list_threads(
                limit, after=listed[-1] if listed else None
            ):
                assert len(page) <= limit
                listed += page
            assert listed == names
        assert await checkpointer.list_threads(500, prefix="thread-1") == [
            name for name in names if name.startswith("thread-1")
        ]
        await asyncio.gather(*(checkpointer.delete(name) for name in names[:-1]))
        assert await checkpointer.list_threads() == names[-1:]

    async def test_prefixes_of_keys_keep_storages_apart(self, redis_server, prefix):
        first, second = (
            RedisCheckpointer(redis_server.url, key_prefix=prefix + end, state_type=None)
            for end in ("a:", "a:b:")
        )
        await first.save({"n": 1}, "t")
        assert await second.load("t") is None
        assert await second.list_threads() == []
        assert not await second.delete("t")
        assert await first.load("t") == {"n": 1}
        await first.close()
        await second.close()


class TestScripts:
    @pytest.mark.slow
    async def test_a_save_and_a_load_are_one_command_each(self, own_server, raw):
        async with RedisCheckpointer(own_server.url, state_type=None) as checkpointer:
            await checkpointer.save(talk(1), "t")
            observer = raw(own_server)
            observer.config_resetstat()
            for turn in range(2, 90):
                await checkpointer.save(talk(turn), "t")
            calls = observer.info("commandstats")
            assert calls["cmdstat_evalsha"]["calls"] == 88
            observer.config_resetstat()
            assert await checkpointer.load("t") == talk(89)
            assert len(await checkpointer.list_checkpoints("t", 100)) == 89
            assert observer.info("commandstats")["cmdstat_evalsha"]["calls"] == 2

    @pytest.mark.slow
    async def test_memory(self, checkpointer, connection, keys):
        full = 0
        for turn in range(1, 201):
            state = talk(turn)
            full += len(orjson.dumps(state))
            await checkpointer.save(state, "t")
        used = [await connection.execute("MEMORY", "USAGE", key, "SAMPLES", 0) for key in keys("t")]
        assert sum(used) / full <= 0.02

    async def test_a_call_that_comes_twice_counts_once(self, checkpointer):
        storage = checkpointer.storage
        first, second = record("a", 2**63 - 1), record("b", 2**63 - 2, 2**63 - 1)
        for _ in range(2):
            assert await storage.store(first, expected_parent=None) == 1
        for _ in range(2):
            assert await storage.store(second, expected_parent="a") == 2
        again = record("a", 2**63 - 3)
        rebased = [record("b", 2**63 - 2)]
        for _ in range(2):
            assert await storage.store(again, expected_parent="b", rebased=rebased) == 3
        assert await storage.store(rebased[0]) == 2
        heads = await storage.list_checkpoints("t", None)
        assert [(head.checkpoint_id, head.sequence) for head in heads] == [("a", 3), ("b", 2)]
        with pytest.raises(CheckpointConflictError):
            await storage.store(record("c", 5), expected_parent="b")

    async def test_revisions_that_differ_in_the_last_bit(self, checkpointer):
        storage = checkpointer.storage
        await storage.store(record("a", 2**63 - 1))
        with pytest.raises(StaleChainError):
            await storage.store(record("b", 2**63 - 3, 2**63 - 2))
        with pytest.raises(StaleChainError):
            await storage.store(record("b", 2**63 - 1))
        assert await storage.delete("t", {2**63 - 2}) == 0
        assert await storage.delete("t", {2**63 - 1}) == 1
        assert await storage.list_threads() == []

    async def test_what_would_cut_a_chain_changes_nothing(self, checkpointer):
        storage = checkpointer.storage
        for sequence in (record("a", 1), record("b", 2, 1), record("c", 3, 2)):
            await storage.store(sequence)
        before = await storage.retrieve_chain("t")
        for attempt in (
            storage.store(record("a", 4)),
            storage.store(record("d", 4, 9)),
            storage.store(record("d", 4), rebased=[record("x", 9)]),
            storage.store(record("b", 4, 2), rebased=[record("c", 3, 2)]),
            storage.delete("t", {2}),
            storage.delete("t", {2}, rebased=[record("c", 3, 2)]),
            storage.delete("t", {2, 7}, rebased=[record("x", 7)]),
        ):
            with pytest.raises(StaleChainError):
                await attempt
        assert await storage.retrieve_chain("t") == before
        assert await storage.delete("t", {2}, rebased=[record("c", 3, 1)]) == 1
        assert [each.checkpoint_id for each in await storage.retrieve_chain("t")] == ["a", "c"]

    @pytest.mark.slow
    async def test_a_thread_of_very_many_records(self, checkpointer):
        storage = checkpointer.storage
        many = 9000
        for start in range(0, many, 500):
            await asyncio.gather(
                *(storage.store(record(f"c{n}", n + 1)) for n in range(start, start + 500))
            )
        assert len(await storage.list_checkpoints("t", None)) == many
        assert await storage.copy_thread("t", "copy") == many
        assert await storage.delete("copy", range(1, many)) == many - 1
        assert await storage.delete("t") == many


class TestSharing:
    @pytest.mark.slow
    async def test_a_cluster_of_three(self, three_masters, prefix):
        async with RedisCheckpointer(
            three_masters.url, key_prefix=prefix, state_type=None
        ) as checkpointer:
            for turn in range(5):
                for number in range(30):
                    await checkpointer.save(
                        {"turn": turn, "n": number},
                        f"t{number}",
                        f"c{turn}",
                        {"even": not turn % 2},
                    )
            names = sorted(f"t{number}" for number in range(30))
            assert await checkpointer.list_threads() == names
            for number in range(30):
                assert await checkpointer.load(f"t{number}", "c3") == {"turn": 3, "n": number}
                assert await checkpointer.copy_thread(f"t{number}", f"u{number}") == 5
            assert len(await checkpointer.query_by_metadata({"even": True}, 1000)) == 180
            assert await checkpointer.prune("t1", keep_last=2) == 3
            for number in range(30):
                assert await checkpointer.delete(f"t{number}")
                assert await checkpointer.load(f"u{number}") == {"turn": 4, "n": number}
            assert await checkpointer.list_threads(prefix="t") == []

    async def test_a_connection_that_is_shared_stays_open(self, redis_server, prefix):
        connection = RedisConnection(redis_server.url, key_prefix=prefix)
        for number in range(2):
            async with RedisCheckpointer(client=connection, state_type=None) as checkpointer:
                await checkpointer.save({"n": number}, f"t{number}")
        async with RedisBackend(client=connection) as backend:
            assert await backend.checkpointer.list_threads() == ["t0", "t1"]
        assert await connection.execute("PING") == b"PONG"
        await connection.close()

    async def test_a_backend_has_one_connection(self, own_server, raw, clients_left):
        async with RedisBackend(
            own_server.url,
            pool_size=3,
            store_options={"text_index": False},
            checkpointer_options={"state_type": None, "ttl": 60},
        ) as backend:
            assert backend.checkpointer.capabilities.ttl
            assert not backend.store.capabilities.search
            puts = [backend.store.put(("a",), f"k{n}", n) for n in range(10)]
            saves = [backend.checkpointer.save({"n": n}, f"t{n}") for n in range(10)]
            await asyncio.gather(*puts, *saves)
            assert len(raw(own_server).client_list()) <= 4
            await backend.store.close()
            await backend.checkpointer.close()
            assert await backend.checkpointer.load("t3") == {"n": 3}
            assert await backend.store.get(("a",), "k3") == 3
        assert clients_left(own_server, 0) == 0

    def test_what_is_shown(self):
        shown = repr(RedisCheckpointer("redis://:hunter2@db:7000/1"))
        assert "db:7000/1" in shown
        assert "hunter2" not in shown
