"""What is acknowledged is on the disk: a power cut right after it takes nothing of it back."""

from __future__ import annotations

import pytest

from locus_memory.backends.file.checkpoints import FileCheckpointer
from locus_memory.backends.file.threads import ThreadFolders
from locus_memory.checkpoint.base import UNSET
from tests.disks import Disk


@pytest.fixture
def disk(monkeypatch):
    return Disk(monkeypatch)


@pytest.mark.parametrize("verb", ["save", "save again", "delete one", "prune one", "delete"])
async def test_the_folder_of_what_was_acknowledged_is_synced(tmp_path, disk, verb):
    base = tmp_path / "base"
    async with FileCheckpointer(base, state_type=None) as checkpointer:
        if verb != "save":
            await checkpointer.save({"n": 1}, "t", "a")
            await checkpointer.save({"n": 2}, "t", "b")
        await {
            "save": lambda: checkpointer.save({"n": 1}, "t", "a"),
            "save again": lambda: checkpointer.save({"n": 3}, "t", "b"),
            "delete one": lambda: checkpointer.delete("t", "b"),
            "prune one": lambda: checkpointer.prune("t", keep_last=1),
            "delete": lambda: checkpointer.delete("t"),
        }[verb]()
    # What is in these two is of no use to a later process.
    temporary = (str(base / ".locks"), str(base / ".aside"))
    assert [place for place in disk.unsynced if not place.startswith(temporary)] == []


@pytest.mark.parametrize("thread", ["t", "Long" * 100])
@pytest.mark.parametrize("verb", ["delete one", "delete", "prune", "copy", "save"])
async def test_an_old_state_stays_dead(tmp_path, monkeypatch, thread, verb):
    async with FileCheckpointer(tmp_path, state_type=None) as checkpointer:
        await checkpointer.save({"old": True}, thread, "a")
        await checkpointer.save({"other": True}, thread, "b")
        await replace_half_way(checkpointer, thread, monkeypatch)
    async with FileCheckpointer(tmp_path, state_type=None) as checkpointer:
        names = ["b"] if verb in ("delete one", "delete") else ["a", "b"]
        assert await checkpointer.load(thread, "a") == {"old": False}
        assert await checkpointer.list_checkpoints(thread) == ["a", "b"]
        if verb == "delete one":
            assert await checkpointer.delete(thread, "a")
        elif verb == "delete":
            for name in ("a", "b"):
                assert await checkpointer.delete(thread, name)
            names = []
        elif verb == "prune":
            assert await checkpointer.prune(thread, keep_last=1) == 1
            names = ["a"]
        elif verb == "copy":
            assert await checkpointer.copy_thread(thread, "u") == 2
        else:
            await checkpointer.save({}, thread, "c")
            names = ["c", "a", "b"]
        assert await checkpointer.list_checkpoints(thread) == names
        assert await checkpointer.load(thread, "a") == ({"old": False} if "a" in names else None)
    assert not any(b'"old":true' in path.read_bytes() for path in tmp_path.rglob("*.ckpt"))


async def test_a_vacuum_clears_a_hidden_record_away(tmp_path, monkeypatch):
    async with FileCheckpointer(tmp_path, state_type=None) as checkpointer:
        await checkpointer.save({"old": True}, "t", "a")
        await replace_half_way(checkpointer, "t", monkeypatch)
        assert len(list(tmp_path.rglob("*.ckpt"))) == 2
        await checkpointer.vacuum(30)
        assert len(list(tmp_path.rglob("*.ckpt"))) == 1
        assert await checkpointer.load("t", "a") == {"old": False}


class KilledError(Exception):
    """The end of a process."""


def killed(*_):
    raise KilledError


async def replace_half_way(checkpointer, thread, monkeypatch):
    """Save the id `a` again, and die once the later record is written."""
    async with FileCheckpointer(checkpointer.storage.place + "-other", state_type=None) as other:
        await other.save({"old": False}, thread, "a")
        record = await other.storage.retrieve(thread, "a")
    with monkeypatch.context() as patch:
        patch.setattr(ThreadFolders, "_unlink", killed)
        with pytest.raises(KilledError):
            checkpointer.storage._threads.store(record, UNSET, ())
