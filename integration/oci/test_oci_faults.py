"""Faults of the service: each is an error of ours, or is survived; no write counts twice."""

from __future__ import annotations

import asyncio
from hashlib import sha512

import pytest
from served import ADDRESS, Served

from locus_memory.backends.oci import OCICheckpointer, OCIStore
from locus_memory.errors import (
    BackendCorruptError,
    BackendError,
    BackendUnavailableError,
    BackendWriteError,
    CheckpointConflictError,
    CheckpointCorruptError,
    ConfigurationError,
    VersionConflictError,
)
from locus_memory.events import subscribe
from locus_memory.testing import FakeClock

NS = ("faults",)


@pytest.fixture
async def store(options):
    async with OCIStore(ADDRESS, **options, retry_seconds=20.0) as store:
        yield store


@pytest.fixture
async def checkpointer(options):
    async with OCICheckpointer(ADDRESS, **options, state_type=None) as checkpointer:
        yield checkpointer


def turns(count):
    return {"messages": [message(n) for n in range(count)]}


def message(number):
    """Return half a kilobyte of text that zlib cannot make much shorter."""
    return "".join(sha512(b"%d %d" % (number, part)).hexdigest() for part in range(4))


ERRORS = [
    (400, "InvalidParameter", BackendError),
    (401, "NotAuthenticated", ConfigurationError),
    (403, "NotAuthorized", ConfigurationError),
    (404, "BucketNotFound", ConfigurationError),
    (404, "NamespaceNotFound", ConfigurationError),
    (404, "NotAuthorizedOrNotFound", ConfigurationError),
    (409, "ConcurrentObjectUpdate", BackendUnavailableError),
    (409, "IncorrectState", BackendUnavailableError),
    (413, "RequestEntityTooLarge", BackendWriteError),
    (400, "QuotaExceeded", BackendWriteError),
    (429, "TooManyRequests", BackendUnavailableError),
    (500, "InternalError", BackendUnavailableError),
    (502, "BadGateway", BackendUnavailableError),
    (503, "ServiceUnavailable", BackendUnavailableError),
    (504, "GatewayTimeout", BackendUnavailableError),
]
"""The answers of the service, and the errors of the library for those that last."""

PASSING = [each for each in ERRORS if each[2] is BackendUnavailableError]


@pytest.mark.parametrize(("status", "code", "kind"), ERRORS)
async def test_an_error_that_lasts_is_one_of_ours(service, options, status, code, kind):
    async with OCIStore(ADDRESS, **options, attempts=2) as store:
        await store.put(NS, "k", "kept")
        service.plan({"kind": "status", "status": status, "code": code, "times": None})
        calls = [
            lambda: store.put(NS, "k", "new"),
            lambda: store.get(NS, "k"),
            lambda: store.exists(NS, "k"),
            lambda: store.delete(NS, "k"),
            lambda: store.scan(NS),
            lambda: store.list_keys(NS),
            store.list_namespaces,
            lambda: store.clear_namespace(NS),
            lambda: store.search(NS),
        ]
        for call in calls:
            with pytest.raises(BackendError if kind is not ConfigurationError else kind) as caught:
                await call()
            assert type(caught.value) is kind
            assert str(caught.value).startswith(f"oci {ADDRESS}: {status} {code}: planned")
        service.plan()
        assert await store.get(NS, "k") == "kept"


@pytest.mark.parametrize("answer", PASSING)
@pytest.mark.parametrize("late", [False, True])
async def test_an_error_that_passes_is_survived_and_counts_once(service, store, answer, late):
    status, code, _ = answer
    if late and status in {409, 429}:
        pytest.skip("these mean that the request had no effect")
    fault = {"kind": "status", "status": status, "code": code, "late": late, "times": 2}
    service.plan({**fault, "method": "PUT"})
    assert [await store.put(NS, "k", n) for n in range(3)] == [1, 2, 3]
    service.plan({**fault, "method": "GET"})
    assert await store.get(NS, "k") == 2
    service.plan({**fault, "method": "DELETE"})
    assert await store.delete(NS, "k")
    assert not await store.exists(NS, "k")
    service.plan({**fault, "method": "GET", "name": "prefix="})
    assert await store.list_keys(NS) == []


async def test_retry_after_is_obeyed(service, store):
    await store.put(NS, "k", 1)
    service.plan(
        {"kind": "status", "status": 429, "code": "TooManyRequests", "retry_after": 1.0, "times": 1}
    )
    loop = asyncio.get_running_loop()
    began = loop.time()
    assert await store.get(NS, "k") == 1
    assert loop.time() - began >= 1.0


async def test_a_wait_that_is_too_long_is_not_begun(service, options):
    async with OCIStore(ADDRESS, **options, retry_seconds=5.0) as store:
        await store.put(NS, "k", 1)
        fault = {"kind": "status", "status": 503, "code": "ServiceUnavailable", "times": None}
        service.plan({**fault, "retry_after": 60.0})
        async with asyncio.timeout(4):
            with pytest.raises(BackendUnavailableError):
                await store.get(NS, "k")


@pytest.mark.parametrize("late", [False, True])
async def test_a_lost_answer_never_counts_twice(service, store, late):
    cut = {"kind": "cut", "late": late, "times": 1}
    for n in range(1, 6):
        service.plan({**cut, "method": "PUT"})
        assert await store.put(NS, "k", n) == n
        service.plan({**cut, "method": "PUT"})
        assert await store.put(NS, f"new{n}", n, if_version=0) == 1
    service.plan({**cut, "method": "PUT"})
    assert await store.put(NS, "k", "six", if_version=5) == 6
    service.plan({**cut, "method": "PUT"})
    with pytest.raises(VersionConflictError):
        await store.put(NS, "k", "no", if_version=5)
    service.plan({**cut, "method": "DELETE"})
    assert await store.delete(NS, "k", if_version=6)
    service.plan({**cut, "method": "DELETE"})
    assert not await store.delete(NS, "k")


@pytest.mark.parametrize("kind", ["cut", "torn"])
async def test_lost_answers_among_many_writers_count_exactly(service, options, kind):
    async with OCIStore(ADDRESS, **options) as one, OCIStore(ADDRESS, **options) as other:
        service.plan({"kind": kind, "late": True, "times": None, "rate": 0.15, "method": "PUT|GET"})
        puts = [store.put(NS, "k", n) for n in range(20) for store in (one, other)]
        assert sorted(await asyncio.gather(*puts)) == list(range(1, 41))
        service.plan()
        item = await one.get_item(NS, "k")
        assert item.version == 40


async def test_a_lost_answer_of_a_delete_does_not_delete_the_next_item(service, options):
    async with OCIStore(ADDRESS, **options) as one, OCIStore(ADDRESS, **options) as other:
        await one.put(NS, "k", "old")
        # The delete has its effect, its answer is late, and another process writes meanwhile.
        slow = {"kind": "status", "status": 500, "code": "InternalError", "late": True}
        service.plan(
            {**slow, "method": "DELETE", "times": 1, "retry_after": 1.0},
        )
        delete = asyncio.create_task(one.delete(NS, "k"))
        await asyncio.sleep(0.5)
        assert await other.put(NS, "k", "new") == 1
        assert await delete
        assert await other.get(NS, "k") == "new"


async def test_a_write_after_the_expiry_sees_what_another_process_put(options):
    clock = FakeClock()
    async with (
        OCIStore(ADDRESS, **options, clock=clock) as one,
        OCIStore(ADDRESS, **options, clock=clock) as other,
    ):
        for key in "abc":
            await one.put(NS, key, "old", ttl=10)
        clock.advance(10)
        for key in "abc":
            assert await other.put(NS, key, "new") == 1
        assert await one.put(NS, "a", "newer") == 2
        assert await one.delete(NS, "b")
        assert not await other.exists(NS, "b")
        with pytest.raises(VersionConflictError):
            await one.delete(NS, "c", if_version=0)
        assert await one.get(NS, "c") == "new"


@pytest.mark.parametrize("kind", ["cut", "torn"])
async def test_a_body_that_is_cut_is_read_again(service, store, kind):
    value = "x" * 100_000
    await store.put(NS, "k", value)
    service.plan({"kind": kind, "method": "GET", "times": 2})
    assert await store.get(NS, "k") == value


async def test_a_slow_service_is_an_outage_not_an_absence(service, options):
    async with OCIStore(ADDRESS, **options, read_timeout=0.3, attempts=2) as store:
        await store.put(NS, "k", 1)
        service.plan({"kind": "slow", "seconds": 1.0, "times": None})
        with pytest.raises(BackendUnavailableError):
            await store.get(NS, "k")
        service.plan()
        assert await store.get(NS, "k") == 1


async def test_a_slow_write_is_found_when_it_landed_after_all(service, options):
    async with OCIStore(ADDRESS, **options, read_timeout=0.3) as store:
        await store.put(NS, "k", 1)
        service.plan({"kind": "slow", "seconds": 0.6, "times": 1, "method": "PUT"})
        assert await store.put(NS, "k", 2) == 2
        assert (await store.get_item(NS, "k")).version == 2


async def test_a_service_that_is_gone_and_comes_back(tmp_path):
    with Served() as service:
        options = {**service.options, "attempts": 2, "connect_timeout": 1.0}
        async with (
            OCIStore(ADDRESS, **options) as store,
            OCICheckpointer(ADDRESS, **options) as checkpointer,
        ):
            await store.put(NS, "k", 1)
            service.stop()
            calls = [store.get(NS, "k"), store.put(NS, "k", 2), checkpointer.load("t")]
            calls += [store.list_keys(NS), checkpointer.save({}, "t"), checkpointer.exists("t")]
            for call in calls:
                with pytest.raises(BackendUnavailableError):
                    await call
            service.start()
            # The service has forgotten its objects and has another key, the file of which is new.
        async with OCIStore(ADDRESS, **options) as store:
            assert await store.get(NS, "k") is None


async def test_retries_are_reported(service, store):
    seen = []
    unsubscribe = subscribe(seen.append)
    service.plan({"kind": "status", "method": "PUT", "times": 1})
    await store.put(NS, "k", 1)
    unsubscribe()
    [event] = [each for each in seen if each.name == "oci.retried"]
    assert event.attributes == {"place": ADDRESS, "attempt": 1}


@pytest.mark.parametrize("damage", ["flip", "cut", "empty", "moved", "foreign"])
async def test_a_damaged_item_is_an_error_that_names_it(service, options, prefix, damage):
    async with OCIStore(ADDRESS, **options) as store:
        await store.put(NS, "secret place", {"hush": "hush"})
        await store.put(NS, "other", 1)
        name = f"{prefix}items/faults--/secret.20place"
        body = service.read(name)
        damaged = {
            "flip": body[:-20] + bytes([body[-20] ^ 1]) + body[-19:],
            "cut": body[:-30],
            "empty": b"",
            "moved": service.read(f"{prefix}items/faults--/other"),
            "foreign": b"not ours",
        }
        service.write(name, damaged[damage])
        for call in (store.get(NS, "secret place"), store.scan(NS)):
            with pytest.raises(BackendCorruptError, match="secret place") as caught:
                await call
            assert "hush" not in str(caught.value)
        assert await store.get(NS, "other") == 1


@pytest.mark.parametrize("late", [False, True])
async def test_saves_survive_lost_answers_exactly(service, checkpointer, late):
    cut = {"kind": "cut", "late": late, "method": "PUT"}
    parent = None
    for n in range(60):
        service.plan({**cut, "times": 1, "after": n % 2})
        parent = await checkpointer.save(turns(n), "t", f"{n:02}", expected_parent=parent)
    service.plan()
    names = await checkpointer.list_checkpoints("t", 100)
    assert names == [f"{n:02}" for n in reversed(range(60))]
    for n in range(60):
        assert await checkpointer.load("t", f"{n:02}") == turns(n)
    with pytest.raises(CheckpointConflictError):
        await checkpointer.save({}, "t", expected_parent="58")


@pytest.mark.parametrize("late", [False, True])
async def test_removals_survive_lost_answers_exactly(service, checkpointer, late):
    for n in range(80):
        await checkpointer.save(turns(n), "t", f"{n:02}")
    cut = {"kind": "cut", "late": late, "times": 1}
    service.plan({**cut, "method": "PUT"}, {**cut, "method": "DELETE"})
    assert await checkpointer.prune("t", keep_last=10) == 70
    service.plan({**cut, "method": "PUT"})
    assert await checkpointer.delete("t", "75")
    service.plan({**cut, "method": "PUT"})
    assert await checkpointer.copy_thread("t", "copy") == 9
    service.plan({**cut, "method": "DELETE"})
    assert await checkpointer.delete("t")
    assert await checkpointer.list_threads() == ["copy"]
    kept = [f"{n:02}" for n in reversed(range(70, 80)) if n != 75]
    assert await checkpointer.list_checkpoints("copy", 100) == kept
    for name in kept:
        assert await checkpointer.load("copy", name) == turns(int(name))


async def test_nothing_is_left_of_what_was_removed(service, prefix, checkpointer):
    for n in range(120):
        await checkpointer.save(turns(n), "t")
    await checkpointer.prune("t", keep_last=3)
    ours = [name for name in service.names() if name.startswith(prefix)]
    text = b"".join(map(service.read, ours))
    assert len(ours) <= 3, ours
    assert len(text) < 3 * len(str(turns(120)))
    await checkpointer.delete("t")
    assert not [name for name in service.names() if name.startswith(prefix)]


async def test_what_a_process_remembers_never_hides_what_another_saved(options):
    async with (
        OCICheckpointer(ADDRESS, **options, state_type=None) as one,
        OCICheckpointer(ADDRESS, **options, state_type=None) as other,
    ):
        assert not await one.exists("t")
        await other.save({"n": 1}, "t", "first")
        assert await one.delete("t")
        assert await one.load("t") is None
        await other.save({"n": 1}, "t", "first")
        assert await one.list_checkpoints("t") == ["first"]
        await other.save({"n": 2}, "t", "second")
        assert await one.delete("t", "second")
        assert not await one.delete("t", "third")
        await other.save({"n": 3}, "t", "third")
        assert await one.prune("t", keep_last=1) == 1
        assert await other.list_checkpoints("t") == ["third"]
        assert await one.save({"n": 4}, "t", expected_parent="third")
        assert await other.delete("t")
        with pytest.raises(CheckpointConflictError):
            await one.save({}, "t", expected_parent="third")
        assert await one.save({"n": 5}, "t", "new", expected_parent=None) == "new"
        assert await other.load("t") == {"n": 5}


async def test_a_pack_that_nothing_refers_to_is_reclaimed_and_no_other(
    service, prefix, checkpointer
):
    for thread in ("t", "u"):
        for n in range(80):
            await checkpointer.save(turns(n), thread)
    packs = [name for name in service.names() if name.startswith(f"{prefix}packs/")]
    service.write(f"{prefix}packs/t/{'0' * 32}", b"left by a killed writer")
    service.write(f"{prefix}packs/gone/{'1' * 32}", b"of a thread that is gone")
    await checkpointer.vacuum()
    assert [name for name in service.names() if name.startswith(f"{prefix}packs/")] == packs
    for thread in ("t", "u"):
        assert await checkpointer.load(thread) == turns(79)


async def test_damaged_threads_are_errors_that_name_them(service, prefix, checkpointer):
    for n in range(80):
        await checkpointer.save(turns(n), "t")
    await checkpointer.save(turns(1), "u")
    await checkpointer.save(turns(1), "v")
    name = f"{prefix}threads/u"
    body = service.read(name)
    service.write(name, body[:50] + bytes([body[50] ^ 1]) + body[51:])
    service.write(f"{prefix}threads/v", service.read(f"{prefix}threads/t"))
    for thread in ("u", "v"):
        for call in (checkpointer.load(thread), checkpointer.list_checkpoints(thread)):
            with pytest.raises(CheckpointCorruptError, match=f"thread '{thread}'"):
                await call
        assert await checkpointer.delete(thread)
        assert not await checkpointer.exists(thread)
    assert await checkpointer.load("t") == turns(79)


async def test_a_lost_pack_is_an_error_and_the_rest_is_there(service, options, prefix):
    async with OCICheckpointer(ADDRESS, **options, state_type=None) as checkpointer:
        for n in range(80):
            await checkpointer.save(turns(n), "t", f"{n:02}")
    pack = next(name for name in service.names() if name.startswith(f"{prefix}packs/t/"))
    service.write(pack, b"")
    async with OCICheckpointer(ADDRESS, **options, state_type=None) as checkpointer:
        assert len(await checkpointer.list_checkpoints("t", 100)) == 80
        results = await asyncio.gather(
            *(checkpointer.load("t", f"{n:02}") for n in range(80)), return_exceptions=True
        )
        lost = [each for each in results if isinstance(each, CheckpointCorruptError)]
        assert lost
        assert all(
            each == turns(n) or isinstance(each, CheckpointCorruptError)
            for n, each in enumerate(results)
        )
        await checkpointer.save(turns(80), "t", "80")
        assert await checkpointer.load("t", "80") == turns(80)
