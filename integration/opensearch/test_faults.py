"""What must not hurt: killed and slow nodes, cut connections, blocks, busy clusters."""

from __future__ import annotations

import asyncio
import shutil
import sys
import time

import pytest

from locus_memory.backends.opensearch import OpenSearchCheckpointer, OpenSearchConnection
from locus_memory.backends.opensearch.schema import CHECKPOINTS
from locus_memory.errors import (
    BackendCorruptError,
    BackendError,
    BackendUnavailableError,
    BackendWriteError,
    ConfigurationError,
)
from locus_memory.registry import get_checkpointer


@pytest.fixture
async def checkpointer(own_server, prefix):
    made = get_checkpointer(
        own_server.url, index_prefix=prefix, state_type=None, command_timeout=20
    )
    async with made:
        yield made
    own_server.call("DELETE", f"/{prefix}*")


def refusal(status, *, after=None, kind="opensearch_rejected_execution_exception"):
    body = b'{"error":{"type":"%s","reason":"busy"},"status":%d}' % (kind.encode(), status)
    wait = b"" if after is None else b"Retry-After: %s\r\n" % after.encode()
    return (
        b"HTTP/1.1 %d Refused\r\nContent-Type: application/json\r\nContent-Length: %d\r\n%s\r\n%s"
        % (status, len(body), wait, body)
    )


@pytest.mark.slow
class TestNode:
    async def test_every_acknowledged_save_outlives_the_node(self, own_server, checkpointer):
        saved, failures = {}, []
        enough = asyncio.Event()

        async def work(thread):
            for number in range(10_000):
                state = {"thread": thread, "n": number}
                try:
                    saved[thread, await checkpointer.save(state, thread)] = state
                    if len(saved) > 300:
                        enough.set()
                except BackendUnavailableError as error:
                    failures.append(error)
                    return

        tasks = [asyncio.create_task(work(f"t{number}")) for number in range(12)]
        await enough.wait()
        await asyncio.to_thread(own_server.kill)
        await asyncio.gather(*tasks)
        assert len(failures) == 12
        with pytest.raises(BackendUnavailableError, match="Cannot connect"):
            await checkpointer.load("t0")
        await asyncio.to_thread(own_server.start)
        for (thread, name), state in saved.items():
            assert await checkpointer.load(thread, name) == state
        for thread in {thread for thread, _ in saved}:
            names = set(await checkpointer.list_checkpoints(thread, 10_000))
            assert names >= {name for of, name in saved if of == thread}
            for name in names:
                assert await checkpointer.load(thread, name) is not None
        await checkpointer.save({"n": 0}, "after")

    async def test_the_call_after_a_restart_works(self, own_server, checkpointer):
        await asyncio.gather(*(checkpointer.save({"n": n}, f"t{n}") for n in range(8)))
        # In this thread: the event loop hears nothing of it until it is back.
        own_server.restart()
        loads = (checkpointer.load(f"t{n}") for n in range(8))
        assert await asyncio.gather(*loads) == [{"n": n} for n in range(8)]
        assert await checkpointer.list_threads() == [f"t{n}" for n in range(8)]

    async def test_a_node_that_hangs_is_unavailable_for_as_long_as_it_hangs(
        self, own_server, checkpointer, prefix
    ):
        await checkpointer.save({"n": 1}, "t")
        hurried = get_checkpointer(
            own_server.url, index_prefix=prefix, command_timeout=1.0, state_type=None
        )
        async with hurried:
            own_server.pause()
            try:
                start = time.monotonic()
                with pytest.raises(BackendUnavailableError, match="no answer in time"):
                    await hurried.load("t")
                with pytest.raises(BackendUnavailableError, match="no answer in time"):
                    await hurried.save({"n": 2}, "t", "late")
                assert time.monotonic() - start < 6
            finally:
                own_server.resume()
            # The save that was not acknowledged may be there, once, or not.
            await hurried.save({"n": 3}, "t", "last")
            names = await hurried.list_checkpoints("t")
            assert names[0] == "last"
            assert len(names) == len(set(names)) in {2, 3}
            assert await hurried.load("t") == {"n": 3}

    async def test_a_red_index_is_an_outage_and_no_empty_thread(
        self, own_server, checkpointer, prefix
    ):
        await checkpointer.save({"n": 1}, "t")
        settings = own_server.call("GET", f"/{prefix}checkpoints/_settings")
        (found,) = (each["settings"]["index"] for each in settings.values())
        shard = own_server.folder / "data" / "nodes" / "0" / "indices" / found["uuid"] / "0"
        away = own_server.folder / "away"
        own_server.kill()
        shard.rename(away)
        own_server.wanted_status = "red"
        try:
            await asyncio.to_thread(own_server.start)
            assert own_server.call("GET", "/_cluster/health")["status"] == "red"
            with pytest.raises(BackendUnavailableError):
                await checkpointer.load("t")
            with pytest.raises(BackendUnavailableError):
                await checkpointer.list_threads()
            with pytest.raises(BackendUnavailableError):
                await checkpointer.save({"n": 2}, "t")
            with pytest.raises(BackendUnavailableError):
                await checkpointer.delete("t")
        finally:
            own_server.kill()
            shutil.rmtree(shard, ignore_errors=True)
            away.rename(shard)
            own_server.wanted_status = "yellow"
            await asyncio.to_thread(own_server.start)
        own_server.call("GET", f"/_cluster/health/{prefix}*?wait_for_status=yellow&timeout=60s")
        assert await checkpointer.load("t") == {"n": 1}
        await checkpointer.save({"n": 2}, "t")
        assert await checkpointer.load("t") == {"n": 2}

    async def test_a_yellow_index_is_as_good_as_a_green_one(self, own_server, prefix):
        made = get_checkpointer(own_server.url, index_prefix=prefix, replicas=1, state_type=None)
        async with made as checkpointer:
            await checkpointer.save({"n": 1}, "t")
            health = own_server.call("GET", f"/_cluster/health/{prefix}checkpoints")
            assert health["status"] == "yellow"
            assert await checkpointer.load("t") == {"n": 1}
        own_server.call("DELETE", f"/{prefix}*")


class TestBlocks:
    @pytest.mark.parametrize("block", ["read_only", "read_only_allow_delete", "write"])
    async def test_a_blocked_index_refuses_writes_and_still_reads(
        self, own_server, checkpointer, prefix, block
    ):
        await checkpointer.save({"n": 1}, "t")
        path = f"/{prefix}checkpoints/_settings"
        own_server.call("PUT", path, {f"index.blocks.{block}": True})
        start = time.monotonic()
        with pytest.raises(BackendWriteError, match="cluster_block_exception"):
            await checkpointer.save({"n": 2}, "t")
        assert time.monotonic() - start < 2
        assert await checkpointer.load("t") == {"n": 1}
        assert await checkpointer.list_checkpoints("t", 5) != []
        own_server.call("PUT", path, {f"index.blocks.{block}": None})
        await checkpointer.save({"n": 3}, "t")
        assert await checkpointer.load("t") == {"n": 3}

    async def test_a_circuit_breaker_is_waited_for_and_then_an_outage(
        self, own_server, checkpointer, events
    ):
        await checkpointer.save({"n": 1}, "t")
        limit = {"transient": {"network.breaker.inflight_requests.limit": "2kb"}}
        large = {"text": "".join(chr(0x4E00 + n % 20_000) for n in range(20_000))}
        own_server.call("PUT", "/_cluster/settings", limit)
        try:
            with pytest.raises(BackendUnavailableError, match="circuit_breaking_exception"):
                await checkpointer.save(large, "t")
            assert [e.name for e in events if e.name == "opensearch.retry"]
            saving = asyncio.create_task(checkpointer.save(large, "t"))
            await asyncio.sleep(0.2)
        finally:
            limit["transient"]["network.breaker.inflight_requests.limit"] = None
            own_server.call("PUT", "/_cluster/settings", limit)
        await saving
        assert await checkpointer.load("t") == large
        assert len(await checkpointer.list_checkpoints("t")) == 2


class TestNetwork:
    async def test_a_busy_cluster_is_asked_again_when_it_says(self, proxy, prefix, events):
        async with OpenSearchCheckpointer(
            proxy.url.partition(":")[2], index_prefix=prefix, state_type=None
        ) as checkpointer:
            await checkpointer.save({"n": 1}, "t")
            proxy.refusals = [refusal(429, after="1"), refusal(429)]
            start = time.monotonic()
            await checkpointer.save({"n": 2}, "t")
            assert 1 <= time.monotonic() - start < 3
            assert len([e for e in events if e.name == "opensearch.retry"]) == 2
            assert len(await checkpointer.list_checkpoints("t")) == 2
            proxy.refusals = [refusal(429, after="3600")]
            with pytest.raises(BackendUnavailableError, match="rejected_execution"):
                await checkpointer.load("t")
            proxy.refusals = [refusal(503, kind="no_shard_available_action_exception")]
            assert await checkpointer.load("t") == {"n": 2}

    @pytest.mark.parametrize("lost", [1, 2])
    async def test_a_save_whose_answer_is_lost_is_saved_once(self, proxy, prefix, lost):
        made = get_checkpointer(proxy.url, index_prefix=prefix, state_type=None)
        async with made as checkpointer:
            await checkpointer.save({"n": 0}, "t")
            for number in (1, 2):
                proxy.cuts_answers = 1
                await checkpointer.save({"n": number}, "t", f"c{number}")
            proxy.cuts_answers = lost
            saves = [checkpointer.save({"n": n}, f"t{n}") for n in range(6)]
            done = await asyncio.gather(*saves, return_exceptions=True)
            assert all(isinstance(each, str | BackendUnavailableError) for each in done)
            proxy.cuts_answers = 1
            assert await checkpointer.prune("t", keep_last=2) == 1
            assert await checkpointer.list_checkpoints("t") == ["c2", "c1"]
            assert await checkpointer.load("t", "c1") == {"n": 1}
            proxy.cuts_answers = 1
            assert await checkpointer.delete("t")
            assert await checkpointer.load("t") is None
            assert "t" not in await checkpointer.list_threads()

    async def test_connections_that_are_cut_between_calls_are_no_error(self, proxy, prefix):
        made = get_checkpointer(proxy.url, index_prefix=prefix, state_type=None)
        async with made as checkpointer:
            for number in range(5):
                await checkpointer.save({"n": number}, "t")
                proxy.cut()
                await asyncio.sleep(0.1)
                assert await checkpointer.load("t") == {"n": number}
                proxy.cut()
                await asyncio.sleep(0.1)

    async def test_a_cancelled_call_leaves_the_others_alone(self, checkpointer):
        async def load():
            while True:
                await checkpointer.load("t")

        await checkpointer.save({"n": 1}, "t")
        for _ in range(10):
            tasks = [asyncio.create_task(load()) for _ in range(20)]
            tasks += [asyncio.create_task(checkpointer.save({"n": 1}, "u")) for _ in range(5)]
            await asyncio.sleep(0.01)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        assert await checkpointer.load("t") == {"n": 1}
        for name in await checkpointer.list_checkpoints("u", 100):
            assert await checkpointer.load("u", name) == {"n": 1}


class TestIndexes:
    async def test_a_deleted_index_is_told_once(self, own_server, checkpointer, prefix, events):
        await checkpointer.save({"n": 1}, "t")
        own_server.call("DELETE", f"/{prefix}checkpoints-000001")
        with pytest.raises(BackendCorruptError, match="was deleted"):
            await checkpointer.load("t")
        assert "opensearch.index_lost" in [event.name for event in events]
        assert await checkpointer.load("t") is None
        await checkpointer.save({"n": 2}, "t")
        own_server.call("DELETE", f"/{prefix}checkpoints-000001")
        with pytest.raises(BackendCorruptError, match="was deleted"):
            await checkpointer.save({"n": 3}, "t")
        assert await checkpointer.list_threads() == []
        found = own_server.call("GET", f"/{prefix}checkpoints/_mapping")
        assert next(iter(found.values()))["mappings"]["dynamic"] == "false"

    async def test_an_index_of_somebody_else_is_refused(self, own_server, prefix):
        own_server.call("PUT", f"/{prefix}checkpoints")
        for expected in ("not the alias", "not made by this library", "'text', not|is text, not"):
            made = get_checkpointer(own_server.url, index_prefix=prefix)
            with pytest.raises(BackendCorruptError, match=expected):
                await made.save({"n": 1}, "t")
            await made.close()
            own_server.call("DELETE", f"/{prefix}*")
            body = {"aliases": {f"{prefix}checkpoints": {}}}
            if expected == "not made by this library":
                properties = {"thread": {"type": "text"}, "body": {"type": "object"}}
                body["mappings"] = {"_meta": {"locus_memory": 1}, "properties": properties}
            own_server.call("PUT", f"/{prefix}other", body)
        own_server.call("DELETE", f"/{prefix}*")

    async def test_a_newer_index_is_refused(self, own_server, checkpointer, prefix):
        newer = {"_meta": {"locus_memory": 99}}
        own_server.call("PUT", f"/{prefix}checkpoints/_mapping", newer)
        made = get_checkpointer(own_server.url, index_prefix=prefix)
        with pytest.raises(ConfigurationError, match="version 99, newer than 1"):
            await made.load("t")
        await made.close()

    async def test_twelve_tasks_and_four_processes_start_at_once(self, own_server, prefix):
        script = (
            "import asyncio, sys\n"
            "from locus_memory import get_checkpointer\n"
            "async def main():\n"
            "    async with get_checkpointer(sys.argv[1], index_prefix=sys.argv[2]) as c:\n"
            "        saves = (c.save({'n': n}, 't') for n in range(12))\n"
            "        await asyncio.gather(*saves)\n"
            "asyncio.run(main())\n"
        )
        command = (sys.executable, "-W", "error", "-c", script, own_server.url, prefix)
        pipe = asyncio.subprocess.PIPE
        starts = (asyncio.create_subprocess_exec(*command, stderr=pipe) for _ in range(4))
        processes = await asyncio.gather(*starts)
        printed = await asyncio.gather(*(process.communicate() for process in processes))
        assert [process.returncode for process in processes] == [0] * 4, printed
        async with get_checkpointer(own_server.url, index_prefix=prefix) as checkpointer:
            assert len(await checkpointer.list_checkpoints("t", 100)) == 48
        own_server.call("DELETE", f"/{prefix}*")

    async def test_requests_are_few(self, proxy, prefix):
        made = [get_checkpointer(proxy.url, index_prefix=prefix, state_type=None) for _ in range(2)]
        for each in made:
            await each.open()
        for number in range(100):
            await made[0].save({"n": number, "list": list(range(number))}, "t")

        async def count(work):
            before = proxy.requests
            await work
            return proxy.requests - before

        assert await count(made[0].save({"n": 100}, "t")) == 1
        assert await count(made[0].load("t")) == 1
        # One that knows nothing of the thread: its document, its older rows, its records.
        assert await count(made[1].load("t")) <= 3
        assert await count(made[1].load("t")) == 1
        assert await count(made[1].save({"n": 101}, "t")) == 2
        assert await count(made[1].save({"n": 102}, "t")) == 1
        for each in made:
            await each.close()


async def test_an_error_quotes_neither_a_document_nor_a_password(own_server, prefix):
    where = own_server.address.removeprefix("http://")
    connection = OpenSearchConnection(f"http://user:hunter2@{where}", index_prefix=prefix)
    async with connection:
        assert "hunter2" not in repr(connection)
        await connection.ensure(CHECKPOINTS)
        index = connection.index(CHECKPOINTS)
        with pytest.raises(BackendError) as caught:
            await connection.request("POST", f"/{index}/_doc/1", {"thread": {"a": "secret"}})
        error = caught.value
        assert "secret" not in f"{error!r} {error.__cause__!r}"
    own_server.call("DELETE", f"/{prefix}*")
