"""Every kind of failure happens here, as a value of `dispatch` and as an error of a verb."""

from __future__ import annotations

import asyncio
import os
from typing import get_args

import pytest

from locus_memory.backends.inmemory.store import InMemoryStore
from locus_memory.backends.sqlite.store import SQLiteStore
from locus_memory.errors import (
    BackendClosedError,
    BackendUnavailableError,
    InvalidArgumentError,
    LocusMemoryError,
    MemoryBackendError,
    MemoryConflict,
    MemoryStoreClosed,
    MemoryTimeout,
    ModelUnavailableError,
    UnsupportedMemoryOp,
    VersionConflictError,
)
from locus_memory.memory.manager import LLMMemoryManager
from locus_memory.resources.failures import as_error, as_failure
from locus_memory.resources.operations import (
    MemoryOp,
    MemoryOpCommit,
    MemoryOpFind,
    MemoryOpRead,
    MemoryOpResource,
    MemoryOpSearch,
    MemoryOpTree,
    MemoryOpWrite,
)
from locus_memory.resources.results import FailureKind, MemoryExecutionFailure
from locus_memory.resources.tree import MemoryTree
from locus_memory.store.item import StoreCapabilities
from locus_memory.store.wrappers.base import StoreWrapper
from locus_memory.testing import FakeModel

SECRET = "hunter2-in-the-text"


class Failing(StoreWrapper):
    """A store whose reads raise an error."""

    def __init__(self, error):
        super().__init__(InMemoryStore())
        self.error = error

    async def get_item(self, namespace, key):
        raise self.error


class Wordless(StoreWrapper):
    """A store without text search."""

    @property
    def capabilities(self):
        return StoreCapabilities(transactions=True, batch_operations=True)

    async def search(self, namespace, query=None, limit=10, **options):
        assert query is not None
        self._unsupported("search")


async def not_found(tmp_path):
    return MemoryTree(InMemoryStore()), MemoryOpRead("memory://nothing")


async def invalid_uri(tmp_path):
    return MemoryTree(InMemoryStore()), MemoryOpRead("memory://a/../b")


async def conflict(tmp_path):
    tree = MemoryTree(InMemoryStore())
    await tree.write("memory://a/b", SECRET)
    return tree, MemoryOpWrite("memory://a", SECRET)


async def unsupported(tmp_path):
    return MemoryTree(Wordless(InMemoryStore())), MemoryOpFind("boat")


async def transport(tmp_path):
    return MemoryTree(Failing(BackendUnavailableError("no server"))), MemoryOpRead("memory://a")


async def store_closed(tmp_path):
    store = SQLiteStore(tmp_path / "closed.db")
    tree = MemoryTree(store)
    await tree.write("memory://a", SECRET)
    await store.close()
    return tree, MemoryOpRead("memory://a")


async def unauthorized(tmp_path):
    if os.geteuid() == 0:
        return MemoryTree(Failing(PermissionError(SECRET))), MemoryOpRead("memory://a")
    file = tmp_path / "closed.txt"
    file.write_text(SECRET, "utf-8")
    file.chmod(0)
    return MemoryTree(InMemoryStore()), MemoryOpResource(str(file))


async def timeout(tmp_path):
    async def slow(messages, **_):
        await asyncio.sleep(30)

    tree = MemoryTree(InMemoryStore(), model=slow)
    return tree, MemoryOpWrite("memory://a", SECRET, wait=True, timeout_seconds=0.01)


async def extraction_failed(tmp_path):
    tree = MemoryTree(InMemoryStore(), model=FakeModel([ModelUnavailableError(SECRET)] * 9))
    said = [{"role": "user", "content": SECRET}]
    return tree, MemoryOpCommit("s", said, wait=True)


async def internal(tmp_path):
    return MemoryTree(Failing(RuntimeError(SECRET))), MemoryOpRead("memory://a")


MAKERS = {
    each.__name__: each
    for each in (
        *(not_found, invalid_uri, conflict, unsupported, transport, store_closed),
        *(unauthorized, timeout, extraction_failed, internal),
    )
}


def test_each_kind_has_a_maker():
    assert set(MAKERS) == set(get_args(FailureKind))


@pytest.mark.parametrize("kind", MAKERS)
async def test_a_failure_is_an_answer(kind, tmp_path):
    tree, op = await MAKERS[kind](tmp_path)
    failure = await tree.dispatch(op)
    assert isinstance(failure, MemoryExecutionFailure)
    assert failure.kind == kind
    assert SECRET not in f"{failure!r} {failure.message} {failure.detail}"
    await tree._background.wait(0.001) if kind != "timeout" else cancel_all(tree)


def cancel_all(tree):
    for task in tuple(tree._background._tasks):
        task.cancel()


@pytest.mark.parametrize("kind", [kind for kind in MAKERS if kind != "timeout"])
async def test_a_verb_raises_the_error_of_the_kind(kind, tmp_path):
    tree, op = await MAKERS[kind](tmp_path)
    with pytest.raises(LocusMemoryError) as caught:
        await tree._done(op, object, "memory://a")
    assert as_failure(caught.value).kind in (kind, "internal")
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize("kind", get_args(FailureKind))
def test_a_failure_of_another_backend_is_raised_as_its_kind(kind):
    failure = MemoryExecutionFailure(kind, "as it says")
    error = as_error(failure, "other", MemoryOpRead("memory://a"), "memory://a")
    assert isinstance(error, MemoryBackendError | BackendUnavailableError)
    assert as_failure(error).kind == kind
    builtins = {"not_found": LookupError, "timeout": TimeoutError, "transport": ConnectionError}
    assert isinstance(error, builtins.get(kind, Exception))


def test_the_errors_are_also_those_of_the_library():
    assert issubclass(MemoryConflict, VersionConflictError)
    assert issubclass(MemoryStoreClosed, BackendClosedError)
    assert issubclass(MemoryTimeout, TimeoutError)
    assert issubclass(UnsupportedMemoryOp, NotImplementedError)


async def test_an_outage_is_never_not_found():
    tree = MemoryTree(Failing(BackendUnavailableError("no server")))
    for op in (MemoryOpRead("memory://a/b"), MemoryOpWrite("memory://a/b", "text")):
        failure = await tree.dispatch(op)
        assert failure.kind == "transport"


@pytest.mark.parametrize("attempts", [1, 3])
@pytest.mark.parametrize("mode", ["inline", "background"])
async def test_messages_that_are_given_up_are_a_failure(mode, attempts, monkeypatch):
    """Also for the commit that tries them for the last time; the ones after it try nothing."""
    monkeypatch.setattr("locus_memory.memory.queue.worker._MOST_ATTEMPTS", attempts)

    async def broken(messages, known=()):
        raise RuntimeError(SECRET)

    store = InMemoryStore()
    manager = LLMMemoryManager(store, extract_fn=broken, extract_mode=mode)
    tree = MemoryTree(store, memory_manager=manager)
    said = [{"role": "user", "content": "The mast is of spruce."}]
    op = MemoryOpCommit("s", said, wait=True)
    found = [await tree.dispatch(op) for _ in range(attempts + 1)]
    failed = [each for each in found if isinstance(each, MemoryExecutionFailure)]
    assert {each.kind for each in failed} == {"extraction_failed"}
    assert [("given up" in each.message) for each in failed][-1]
    assert SECRET not in str(found)
    assert found[-1].extracted_count == 0
    assert len((await tree.list("memory://sessions/s")).entries) == 1
    await manager.close()


@pytest.mark.parametrize("session_id", ["..", "a" * 1001])
async def test_a_session_that_no_uri_can_name_queues_nothing(session_id):
    tree = MemoryTree(InMemoryStore())
    said = [{"role": "user", "content": "I live in Berlin."}]
    failure = await tree.dispatch(MemoryOpCommit(session_id, said, wait=True))
    assert failure.kind == "invalid_uri"
    await tree.commit("s", [{"role": "user", "content": "Hello."}], wait=True)
    assert not [each async for each in tree._manager().memories()]


async def test_what_is_raised():
    class Unknown(MemoryOp):
        pass

    tree = MemoryTree(InMemoryStore())
    for op in (Unknown(), "write", None):
        with pytest.raises(UnsupportedMemoryOp):
            await tree.dispatch(op)
    await tree.close()
    await tree.close()
    with pytest.raises(MemoryStoreClosed):
        await tree.dispatch(MemoryOpRead("memory://a"))
    with pytest.raises(MemoryStoreClosed):
        await tree.for_user("ada").read("memory://a")


async def test_cancellation_goes_through():
    class Hanging(StoreWrapper):
        async def get_item(self, namespace, key):
            await asyncio.Event().wait()

    task = asyncio.create_task(MemoryTree(Hanging(InMemoryStore())).read("memory://a"))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.parametrize(
    "make",
    [
        lambda: MemoryOpWrite("memory://a", None),
        lambda: MemoryOpWrite("memory://a", "\ud800"),
        lambda: MemoryOpWrite("memory://a", "t", mode="new"),
        lambda: MemoryOpWrite("memory://a", "t", timeout_seconds=0),
        lambda: MemoryOpWrite("memory://a", "t", metadata={"a": 1}),
        lambda: MemoryOpWrite("memory://a", "t", metadata=["a"]),
        lambda: MemoryOpRead("memory://a", "all"),
        lambda: MemoryOpRead("memory://a", encoding="latin-1"),
        lambda: MemoryOpRead("memory://a", version=-1),
        lambda: MemoryOpRead("memory://a", "abstract", version=1),
        lambda: MemoryOpTree("memory://a", 0),
        lambda: MemoryOpFind(None),
        lambda: MemoryOpSearch("q", top_k=-1),
        lambda: MemoryOpResource(""),
        lambda: MemoryOpCommit("", []),
    ],
)
def test_an_operation_is_checked_when_it_is_made(make):
    with pytest.raises(InvalidArgumentError):
        make()
