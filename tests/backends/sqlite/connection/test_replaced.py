"""A file that is deleted or replaced while it is open: nothing is acknowledged and then lost."""

from __future__ import annotations

import shutil
import sys

import pytest

from locus_memory.backends.sqlite.backend import SQLiteBackend
from locus_memory.errors import BackendUnavailableError

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="an open file stays where it is")

NS = ("notes",)
CALLS = {
    "put": lambda b: b.store.put(NS, "k", 2),
    "get": lambda b: b.store.get(NS, "k"),
    "get nothing": lambda b: b.store.get(NS, "absent"),
    "search": lambda b: b.store.search(NS),
    "save": lambda b: b.checkpointer.save({"n": 2}, "t"),
    "load": lambda b: b.checkpointer.load("t", "c"),
    "compact": lambda b: b.store.compact(),
}


@pytest.fixture(autouse=True)
def readers_that_always_look(monkeypatch):
    monkeypatch.setattr("locus_memory.backends.sqlite.connection.pool._LOOK_AGAIN", 0.0)


@pytest.fixture
async def backend(tmp_path):
    async with SQLiteBackend(tmp_path / "agent.db", readers=2) as opened:
        await opened.store.put(NS, "k", 1)
        await opened.checkpointer.save({"n": 1}, "t", "c")
        yield opened


def delete(path):
    for each in path.parent.glob("agent.db*"):
        each.unlink()


def replace(path):
    copy = path.with_name("copy.db")
    shutil.copy(path, copy)
    delete(path)
    copy.rename(path)


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize(("change", "what"), [(delete, "deleted"), (replace, "replaced")])
async def test_every_call_says_so(backend, tmp_path, change, what, name):
    change(tmp_path / "agent.db")
    for _ in range(3):
        with pytest.raises(BackendUnavailableError, match=f"agent.db: the file was {what}"):
            await CALLS[name](backend)
    # Nobody made an empty one in its place.
    assert (tmp_path / "agent.db").exists() == (change is replace)


async def test_a_file_that_is_put_back_is_used_again(backend, tmp_path):
    (tmp_path / "agent.db").rename(tmp_path / "away.db")
    with pytest.raises(BackendUnavailableError, match="put it back"):
        await backend.store.put(NS, "k", 2)
    (tmp_path / "away.db").rename(tmp_path / "agent.db")
    assert await backend.store.get(NS, "k") == 1
    assert await backend.store.put(NS, "k", 2) == 2


async def test_a_path_that_leads_to_the_file_may_be_a_link(tmp_path):
    (tmp_path / "link.db").symlink_to(tmp_path / "agent.db")
    async with SQLiteBackend(tmp_path / "link.db") as backend:
        await backend.store.put(NS, "k", 1)
        assert await backend.store.get(NS, "k") == 1


async def test_a_new_store_uses_what_is_there_now(backend, tmp_path):
    delete(tmp_path / "agent.db")
    async with SQLiteBackend(tmp_path / "agent.db") as other:
        assert await other.store.get(NS, "k") is None
        with pytest.raises(BackendUnavailableError):
            await backend.store.put(NS, "k", 2)
        await other.store.put(NS, "k", 3)
        assert await other.store.get(NS, "k") == 3
