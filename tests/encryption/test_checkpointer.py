"""Encrypted checkpoints: who can read them, what binds them, and the way to and between keys."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace

import pytest

from locus_memory.backends.inmemory.checkpoints import MemoryCheckpointer
from locus_memory.backends.sqlite.checkpoints import SQLiteCheckpointer
from locus_memory.checkpoint.base import BaseCheckpointer
from locus_memory.checkpoint.chain import DeltaCheckpointer
from locus_memory.encryption import EncryptingCheckpointer, EncryptionKeys
from locus_memory.errors import ConfigurationError, EncryptionError
from locus_memory.events import subscribe
from locus_memory.registry import open_backend

OLD, NEW = b"o" * 32, b"n" * 32
SECRET = "the walnut is under the stairs"


def state(turns):
    return {"messages": [{"role": "user", "content": f"{n}: {SECRET}"} for n in range(turns)]}


@pytest.fixture
def plain():
    return MemoryCheckpointer(state_type=None)


def sealed(plain, active="new", *, accept_plain=False):
    keys = {"old": OLD, "new": NEW}
    return EncryptingCheckpointer(plain, keys, active=active, accept_plain=accept_plain)


async def filled(checkpointer, threads=("t", "u"), turns=5):
    for thread in threads:
        for turn in range(1, turns + 1):
            await checkpointer.save(state(turn), thread, f"c{turn}", {"turn": turn})
    return checkpointer


async def swap(checkpointer, thread, change):
    """Overwrite a stored record of a thread with a change of it, sealed as a storage does it."""
    storage = checkpointer.storage.inner
    [record] = [
        each
        for each in await checkpointer.storage.encrypted_records(thread)
        if each.checkpoint_id == "c1"
    ]
    changed = change(record)
    await storage.delete(thread, (), rebased=[changed])


async def test_a_save_still_stores_only_the_changes(tmp_path):
    sizes = {}
    for name in ("plain", "sealed"):
        inner = SQLiteCheckpointer(tmp_path / f"{name}.db", state_type=None)
        checkpointer = inner if name == "plain" else sealed(inner)
        async with checkpointer:
            await filled(checkpointer, turns=60)
            sizes[name] = (await checkpointer.get_storage_stats("t"))["compressed_size"]
            infos = await checkpointer.list_with_metadata("t", 100)
            assert await checkpointer.load("t", "c7") == state(7)
        assert sum(info.is_full for info in infos) == 1
    # An id, a nonce and a tag: 33 bytes for each of 60 records.
    assert sizes["sealed"] == sizes["plain"] + 60 * 33


async def test_the_payloads_in_the_database_are_encrypted(tmp_path):
    async with sealed(SQLiteCheckpointer(tmp_path / "a.db", state_type=None)) as checkpointer:
        await filled(checkpointer)
        records = await checkpointer.storage.encrypted_records("t")
    assert all(record.payload[:5] == b"\xe0\x03new" for record in records)
    with closing(sqlite3.connect(tmp_path / "a.db")) as database:
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)


async def test_metadata_and_lists_need_no_key_and_states_do(plain):
    await filled(sealed(plain))
    assert await plain.list_checkpoints("t") == ["c5", "c4", "c3", "c2", "c1"]
    assert [info.thread_id for info in await plain.query_by_metadata({"turn": 2})] == ["u", "t"]
    for call in (plain.load("t"), plain.save({}, "t"), plain.delete("t", "c1")):
        with pytest.raises(EncryptionError, match="'t' is encrypted: open it with its keys"):
            await call
    with pytest.raises(EncryptionError, match="needs the key 'new'"):
        await EncryptingCheckpointer(plain, {"old": OLD}, active="old").load("t")


@pytest.mark.parametrize(
    "change",
    [
        lambda record: replace(record, metadata={"turn": 99}),
        lambda record: replace(record, level=3),
        lambda record: replace(record, created_at=record.created_at + 1),
        lambda record: replace(record, payload=record.payload[:-1]),
        lambda record: replace(record, payload=record.payload[:10]),
        lambda record: replace(record, payload=record.payload[:1]),
        lambda record: replace(record, payload=b"\xe0\x03\xff\xff\xff" + record.payload[5:]),
        lambda record: replace(record, payload=b"\xe0\x03old" + record.payload[5:]),
        lambda record: replace(
            record, payload=record.payload[:-1] + bytes((record.payload[-1] ^ 1,))
        ),
    ],
)
async def test_an_altered_record_is_refused(plain, change):
    checkpointer = await filled(sealed(plain))
    await swap(checkpointer, "t", change)
    for call in (
        checkpointer.load("t", "c1"),
        checkpointer.load("t"),
        checkpointer.prune("t", keep_last=2),
    ):
        with pytest.raises(EncryptionError):
            await call
    keys = {"old": OLD, "new": NEW, "next": bytes(32)}
    with pytest.raises(EncryptionError):
        await EncryptingCheckpointer(plain, keys, active="next").rotate("t")
    assert await checkpointer.load("u") == state(5)


async def test_a_record_of_another_thread_or_id_is_refused(plain):
    checkpointer = await filled(sealed(plain))
    [*_, other] = await checkpointer.storage.encrypted_records("u")
    await swap(checkpointer, "t", lambda record: replace(record, payload=other.payload))
    with pytest.raises(EncryptionError, match="'c1' of thread 't' was altered, moved"):
        await checkpointer.load("t", "c1")
    checkpointer = await filled(sealed(MemoryCheckpointer(state_type=None, max_chain_depth=0)))
    second = (await checkpointer.storage.encrypted_records("t"))[-2]
    await swap(checkpointer, "t", lambda record: replace(record, payload=second.payload))
    with pytest.raises(EncryptionError, match="'c1' of thread 't' was altered, moved"):
        await checkpointer.load("t", "c1")


async def test_a_forged_plain_record_is_refused(plain):
    checkpointer = await filled(sealed(plain))
    forged = DeltaCheckpointer(plain.storage, state_type=None, max_chain_depth=0)
    await forged.save({"forged": True}, "t", "c6")
    with pytest.raises(EncryptionError, match="'c6' of thread 't' is not encrypted"):
        await checkpointer.load("t")
    assert await sealed(plain, accept_plain=True).load("t") == {"forged": True}


async def test_a_fork_is_bound_to_its_own_name(plain):
    checkpointer = await filled(sealed(plain))
    await checkpointer.fork("t", "c3", "fork")
    assert await checkpointer.copy_thread("t", "copy") == 5
    assert await checkpointer.load("fork") == state(3)
    assert await checkpointer.load("copy", "c4") == state(4)
    [info, *_] = await checkpointer.list_with_metadata("fork")
    assert info.forked_from == ("t", "c3")
    # The database's own copy is of the old name, and refused.
    await plain.copy_thread("t", "stolen")
    with pytest.raises(EncryptionError, match="thread 'stolen' was altered, moved"):
        await checkpointer.load("stolen")
    await checkpointer.delete("stolen")
    assert await checkpointer.fork("t", "c3", "stolen") == "c3"


async def test_a_copy_that_cannot_be_bound_leaves_no_thread(plain):
    checkpointer = await filled(sealed(plain))
    await swap(checkpointer, "t", lambda record: replace(record, metadata={}))
    with pytest.raises(EncryptionError):
        await checkpointer.copy_thread("t", "copy")
    assert await checkpointer.list_threads() == ["t", "u"]


async def test_a_vacuum_passes_over_a_thread_that_no_key_opens(plain):
    checkpointer = await filled(sealed(plain))
    await swap(checkpointer, "t", lambda record: replace(record, metadata={}))
    events = []
    unsubscribe = subscribe(events.append)
    try:
        assert await checkpointer.vacuum(0) == 4
    finally:
        unsubscribe()
    assert [event.attributes["thread_id"] for event in events if event.error] == ["t"]
    assert await checkpointer.load("u") == state(5)


async def test_rotation_renews_each_record_once(plain):
    await filled(sealed(plain, "old"))
    checkpointer = sealed(plain)
    await checkpointer.save(state(6), "t", "c6")
    before = await checkpointer.list_with_metadata("t", 100)
    assert await checkpointer.rotate("u") == 5
    assert await checkpointer.rotate() == 5
    assert await checkpointer.rotate() == 0
    after = await checkpointer.list_with_metadata("t", 100)
    assert after == before
    only = EncryptingCheckpointer(plain, {"new": NEW}, active="new")
    for turn in range(1, 7):
        assert await only.load("t", f"c{turn}") == state(turn)


async def test_plain_checkpoints_are_encrypted_in_place(plain):
    await filled(plain)
    with pytest.raises(EncryptionError, match="accept_plain"):
        await sealed(plain).rotate()
    checkpointer = sealed(plain, accept_plain=True)
    await checkpointer.save(state(6), "t", "c6")
    assert await checkpointer.load("t", "c2") == state(2)
    assert await checkpointer.rotate() == 10
    assert await sealed(plain).load("t", "c2") == state(2)
    assert await sealed(plain).load("t") == state(6)


async def test_saves_and_prunes_during_a_rotation_lose_nothing(plain):
    await filled(sealed(plain, "old"), turns=120)
    checkpointer = sealed(plain)
    other = sealed(plain)
    changes = checkpointer.rotation()
    async for record, _, _ in changes:
        if record.checkpoint_id == "c119":
            await other.save(state(121), record.thread_id, "c121")
            await other.prune(record.thread_id, keep_last=50)
    assert await checkpointer.rotate() == 0
    for thread in ("t", "u"):
        assert await checkpointer.load(thread, "c100") == state(100)
        assert await checkpointer.load(thread) == state(121)


async def test_a_thread_that_changes_under_a_rotation_is_read_again(plain, monkeypatch):
    await filled(sealed(plain, "old"))
    checkpointer = sealed(plain)
    read = checkpointer.storage.encrypted_records
    hits = []

    async def interfered(thread_id):
        records = await read(thread_id)
        if not hits:
            hits.append(1)
            await sealed(plain, "old").delete(thread_id, "c1")
        return records

    monkeypatch.setattr(checkpointer.storage, "encrypted_records", interfered)
    await checkpointer.rotate("t")
    assert await checkpointer.load("t") == state(5)
    assert await checkpointer.rotate() == 5


async def test_only_checkpointers_with_records_can_be_encrypted():
    class Other(BaseCheckpointer):
        """A checkpointer of another kind."""

    Other.__abstractmethods__ = frozenset()
    with pytest.raises(ConfigurationError, match="Other is no DeltaCheckpointer"):
        sealed(Other())


async def test_the_option_of_the_registry_encrypts_both_contracts(tmp_path):
    url = f"sqlite:{tmp_path / 'a.db'}"
    keys = EncryptionKeys({"k": NEW}, active="k")
    async with open_backend(url, state_type=None, encryption=keys) as backend:
        await backend.store.put(("n",), "k", SECRET)
        await backend.checkpointer.save(state(1), "t")
        assert await backend.problems() == []
    async with open_backend(url, state_type=None) as backend:
        assert set(await backend.store.get(("n",), "k")) == {"aes_gcm", "key_id"}
        with pytest.raises(EncryptionError):
            await backend.checkpointer.load("t")
