"""The events of the process: a list, and a stream that continues where it broke off."""

from __future__ import annotations

import asyncio
import threading

import pytest

from locus_memory.events import emit
from locus_memory.web.questions.journal import Journal


@pytest.fixture
def journal():
    journal = Journal()
    journal.open()
    yield journal
    journal.close()


async def some_turns_of_the_loop():
    for _ in range(20):
        await asyncio.sleep(0)


async def test_events_are_listed_without_what_they_must_not_hold(plain, serving):
    async with serving(plain) as client:
        emit(
            "memory.duplicate_dropped", type="user", odd={"a": (1, 2)}, error=ValueError("hunter2")
        )
        answer = await client.get("/events")
        (entry,) = answer.json()["events"]
        assert (entry["id"], entry["name"], entry["error"]) == (
            1,
            "memory.duplicate_dropped",
            "ValueError",
        )
        assert entry["attributes"] == {"type": "user", "odd": "{'a': (1, 2)}"}
        assert "hunter2" not in answer.text
        emit("memory.duplicate_dropped", type="user")
        after = (await client.get("/events", params={"after": 1})).json()["events"]
        assert [each["id"] for each in after] == [2]


async def test_the_newest_are_kept_and_listed(journal):
    for _ in range(1_100):
        emit("x")
    assert [each.id for each in journal.page(0, 2)] == [1_099, 1_100]
    assert len(journal.page(0, 10_000)) == 1_000


async def test_a_reader_gets_what_comes_from_any_thread_in_order(journal):
    emit("first")
    stream = journal.follow(0, 60)
    assert (await anext(stream)).name == "first"
    following = asyncio.ensure_future(anext(stream))
    await asyncio.sleep(0)
    threads = [threading.Thread(target=emit, args=(f"t{number}",)) for number in range(20)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    found = [await following] + [await anext(stream) for _ in range(19)]
    assert [each.id for each in found] == list(range(2, 22))
    assert journal.readers == 1
    await stream.aclose()
    assert journal.readers == 0


async def test_a_reader_of_an_earlier_process_gets_all(journal):
    emit("x")
    stream = journal.follow(500, 60)
    assert (await anext(stream)).id == 1
    await stream.aclose()


async def test_silence_is_told(journal):
    stream = journal.follow(0, 0)
    assert await anext(stream) is None
    await stream.aclose()


async def test_a_cancelled_reader_leaves_nothing_behind(journal):
    async def read():
        async for _ in journal.follow(0, 60):
            pass

    task = asyncio.ensure_future(read())
    await some_turns_of_the_loop()
    assert journal.readers == 1
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await some_turns_of_the_loop()
    assert journal.readers == 0


@pytest.mark.parametrize("last", ["x", "-1", "²", "9" * 19])
async def test_an_invalid_place_in_the_stream_is_refused(plain, serving, last):
    async with serving(plain) as client:
        headers = {"last-event-id": last.encode()}
        answer = await client.get("/events/stream", headers=headers)
        assert answer.status_code == 400


async def test_there_are_so_many_streams_and_no_more(plain, serving, monkeypatch):
    monkeypatch.setattr(Journal, "readers", 64)
    async with serving(plain) as client:
        assert (await client.get("/events/stream")).status_code == 503
