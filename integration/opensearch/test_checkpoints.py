"""The documents of threads: long names, many threads, damage, and what nobody names any more."""

from __future__ import annotations

import asyncio
import random

import pytest

from locus_memory.backends.opensearch.schema import CHECKPOINTS
from locus_memory.backends.opensearch.threads import Thread, digest_of, written
from locus_memory.backends.record_lists.rows import saved
from locus_memory.checkpoint.record import Record, RecordHead
from locus_memory.errors import CheckpointCorruptError
from locus_memory.registry import get_checkpointer


@pytest.fixture
async def checkpointer(opensearch_url, prefix):
    made = get_checkpointer(opensearch_url, index_prefix=prefix, state_type=None)
    async with made:
        yield made
        await made.storage._connection.request("DELETE", f"/{prefix}*")


def record(thread_id):
    head = RecordHead(
        thread_id=thread_id,
        checkpoint_id="c",
        revision=random.getrandbits(63),
        base=None,
        level=0,
        sequence=0,
        created_at=0.0,
        metadata={},
        size=0,
        stored_size=0,
    )
    return Record.pack(b"{}", head, 6)


async def nothing(*_, **__):
    """Do nothing, in place of the deletions of a process that was killed before them."""


async def documents(connection):
    """Return the ids of all documents of the index and their sources."""
    await connection.refresh(CHECKPOINTS)
    body = {"size": 10_000, "query": {"match_all": {}}}
    path = f"/{connection.index(CHECKPOINTS)}/_search"
    answer = await connection.request("POST", path, body, again=True)
    return {hit["_id"]: hit["_source"] for hit in answer["hits"]["hits"]}


async def change(connection, thread_id, name, source):
    path = f"/{connection.index(CHECKPOINTS)}/_doc/{name}"
    await connection.request("POST", path, source, params={"routing": digest_of(thread_id)})


@pytest.mark.slow
async def test_more_than_ten_thousand_threads_are_listed(checkpointer):
    storage = checkpointer.storage
    names = [f"t{number:05}" for number in range(10_050)]
    for start in range(0, len(names), 500):
        empty = [Thread(thread_id=name) for name in names[start:][:500]]
        changes = [(each, saved(each, record(each.thread_id), None, ())) for each in empty]
        lines = [line for each, change in changes for line in written(each, change.after)]
        assert not any("error" in each for each in await storage._send(lines))
    assert await checkpointer.list_threads(20_000) == names
    assert await checkpointer.list_threads(5, after=names[10_000]) == names[10_001:10_006]
    assert await checkpointer.list_threads(20_000, prefix="t1") == names[10_000:]
    assert len(await checkpointer.query_by_metadata({}, 20_000)) == 10_050


async def test_names_longer_than_a_term_are_listed_in_order(checkpointer):
    long = "x" * 8_000
    names = [long[:-1], long, f"{long}a", f"{long}b", f"{long}c" + "y" * 30_000, "y"]
    for name in random.sample(names, len(names)):
        await checkpointer.save({"n": name[-1]}, name)
    assert await checkpointer.list_threads() == names
    assert [await checkpointer.list_threads(n) for n in range(7)] == [names[:n] for n in range(7)]
    for place, name in enumerate(names):
        assert await checkpointer.list_threads(after=name) == names[place + 1 :]
        assert await checkpointer.list_threads(1, after=name) == names[place + 1 :][:1]
    assert await checkpointer.list_threads(prefix=f"{long}b") == [names[3]]
    assert await checkpointer.load(names[4]) == {"n": "y"}


async def test_a_long_thread_keeps_its_order_in_pages(checkpointer):
    saved = [await checkpointer.save({"n": n}, "t", metadata={"n": n}) for n in range(150)]
    assert await checkpointer.list_checkpoints("t", 1_000) == saved[::-1]
    for place in (0, 31, 32, 33, 64, 100, 149):
        assert await checkpointer.load("t", saved[place]) == {"n": place}
    assert await checkpointer.prune("t", keep_last=70) == 80
    assert await checkpointer.list_checkpoints("t", 1_000) == saved[:79:-1]
    for place in (80, 100, 149):
        assert await checkpointer.load("t", saved[place]) == {"n": place}
    # Large metadata fill a page earlier.
    large = [await checkpointer.save({"n": n}, "u", metadata={"x": "y" * 9_000}) for n in range(9)]
    assert await checkpointer.list_checkpoints("u", 1_000) == large[::-1]
    assert await checkpointer.get_metadata("u", large[0]) == {"x": "y" * 9_000}


async def test_nothing_is_left_of_what_was_deleted(checkpointer):
    connection = checkpointer.storage._connection
    for number in range(100):
        await checkpointer.save({"n": number}, "t")
    await checkpointer.copy_thread("t", "u")
    await checkpointer.prune("t", keep_last=3)
    await checkpointer.save({"n": 0}, "t", "again")
    await checkpointer.save({"n": 1}, "t", "again")
    left = {n for n in await documents(connection) if n.startswith(digest_of("t"))}
    # The thread, and four payloads; the three that were kept have no page.
    assert len(left) == 5
    for name in ("t", "u"):
        assert await checkpointer.delete(name)
    assert await documents(connection) == {}


async def test_damage_is_named_and_stays_where_it_is(checkpointer):
    connection = checkpointer.storage._connection
    for thread in ("t", "u"):
        for number in range(40):
            await checkpointer.save({"n": [number] * 50}, thread, f"c{number}")
    found = await documents(connection)
    thread = found[digest_of("t")]
    *_, newest = thread["body"]["rows"]
    name = digest_of("t") + newest[-1]
    for damaged in ({"body": {"payload": "AAAA"}}, {"body": {"payload": "?"}}, {"body": {}}):
        await change(connection, "t", name, damaged)
        with pytest.raises(CheckpointCorruptError, match="c39"):
            await checkpointer.load("t")
    await change(connection, "t", name, found[name])
    assert await checkpointer.load("t") == {"n": [39] * 50}
    path = f"/{connection.index(CHECKPOINTS)}/_doc/{name}"
    await connection.request("DELETE", path, params={"routing": digest_of("t")})
    with pytest.raises(CheckpointCorruptError, match="its payload is missing"):
        await checkpointer.load("t")
    await change(connection, "t", name, found[name])
    page = digest_of("t") + thread["body"]["pages"][0][0]
    fresh = get_checkpointer("opensearch", client=connection, state_type=None)
    for damaged in ({"body": {"rows": [[1]]}}, {}):
        await change(connection, "t", page, damaged)
        with pytest.raises(CheckpointCorruptError, match="'t'"):
            await fresh.load("t", "c3")
    await change(connection, "t", page, found[page])
    assert await fresh.load("t", "c3") == {"n": [3] * 50}
    await change(connection, "t", digest_of("t"), found[digest_of("u")])
    with pytest.raises(CheckpointCorruptError, match="another thread"):
        await fresh.load("t")
    await change(connection, "t", digest_of("t"), {"body": {"name": "t"}})
    with pytest.raises(CheckpointCorruptError, match="its list of records is damaged"):
        await fresh.save({"n": 1}, "t")
    assert await fresh.load("u") == {"n": [39] * 50}
    # A damaged thread can be deleted as a whole, and begun again.
    assert await fresh.delete("t")
    assert await fresh.load("t") is None
    await checkpointer.save({"n": 1}, "t")
    assert await fresh.load("t") == {"n": 1}


async def test_two_connections_save_one_thread_at_once(opensearch_url, checkpointer, prefix):
    other = get_checkpointer(opensearch_url, index_prefix=prefix, state_type=None)
    async with other:
        saves = [c.save({"n": n}, "t") for n in range(50) for c in (checkpointer, other)]
        names = await asyncio.gather(*saves)
        listed = await other.list_with_metadata("t", 1_000)
        assert {each.checkpoint_id for each in listed} == set(names)
        assert [each.sequence for each in listed] == list(range(100, 0, -1))
        removals = await asyncio.gather(other.delete("t"), checkpointer.delete("t"))
        assert sorted(removals) == [False, True]


async def test_a_save_whose_answer_is_lost_does_not_hide_what_followed(
    opensearch_url, checkpointer, prefix
):
    storage, names = checkpointer.storage, list("abcd")
    send = storage._send

    async def lost(operations):
        operations = list(operations)
        await send(operations)
        storage._send = send
        # Before the request is sent again, another process saves.
        await other.save({"n": 2}, "t", "c")
        return await send(operations)

    other = get_checkpointer(opensearch_url, index_prefix=prefix, state_type=None)
    async with other:
        await checkpointer.save({"n": 0}, "t", "a")
        storage._send = lost
        await checkpointer.save({"n": 1}, "t", "b")
        await checkpointer.save({"n": 3}, "t", "d")
        assert await other.list_checkpoints("t") == names[::-1]
        for n, name in enumerate(names):
            assert await other.load("t", name) == {"n": n}


async def test_vacuum_deletes_what_a_killed_process_left(checkpointer, opensearch_url, prefix):
    storage = checkpointer.storage
    for name in ("deleted", "pruned", "whole"):
        for n in range(70):
            await checkpointer.save({"n": n}, name)
    # What is left if a process ends after the write of a thread, and before the deletions.
    killed = get_checkpointer(opensearch_url, index_prefix=prefix, state_type=None)
    killed.storage._remove = nothing
    async with killed:
        await killed.delete("deleted")
        await killed.prune("pruned", keep_last=5)
    left = await documents(storage._connection)
    assert len(left) > 210
    assert not await checkpointer.delete("deleted")
    assert await checkpointer.vacuum(30) == 0
    whole = {each for each in left if each.startswith(digest_of("whole"))}
    kept = await documents(storage._connection)
    assert {each for each in kept if each.startswith(digest_of("whole"))} == whole
    assert sum(each.startswith(digest_of("pruned")) for each in kept) == 6
    assert not [each for each in kept if each.startswith(digest_of("deleted"))]
    assert await checkpointer.load("whole") == {"n": 69}
    assert await checkpointer.load("pruned") == {"n": 69}
    assert await checkpointer.save({"n": "again"}, "deleted")
    assert await checkpointer.load("deleted") == {"n": "again"}


async def test_vacuum_takes_nothing_from_those_who_write(checkpointer, opensearch_url, prefix):
    others = [
        get_checkpointer(opensearch_url, index_prefix=prefix, state_type=None) for _ in range(3)
    ]
    saved, done = {}, asyncio.Event()

    async def write(writer, number):
        async with writer:
            for n in range(40):
                thread = f"t{(n + number) % 2}"
                saved[thread, await writer.save({"n": n}, thread)] = {"n": n}

    async def clean():
        while not done.is_set():
            await checkpointer.vacuum(30)

    cleaning = asyncio.create_task(clean())
    await asyncio.gather(*(write(each, number) for number, each in enumerate(others)))
    done.set()
    await cleaning
    for (thread, name), state in saved.items():
        assert await checkpointer.load(thread, name) == state


async def test_nothing_is_left_of_a_thread_that_cannot_be_read(checkpointer):
    connection = checkpointer.storage._connection
    for n in range(40):
        await checkpointer.save({"n": n}, "t")
    await checkpointer.save({"n": 1}, "other")
    await change(connection, "t", digest_of("t"), {"thread": "t", "body": {"name": 1}})
    before = await documents(connection)
    await change(connection, "t", digest_of("t"), before[digest_of("other")])
    assert await checkpointer.vacuum(30) == 0
    assert (await documents(connection)).keys() == before.keys()
    assert await checkpointer.delete("t")
    assert all(each.startswith(digest_of("other")) for each in await documents(connection))
    assert await checkpointer.load("other") == {"n": 1}
