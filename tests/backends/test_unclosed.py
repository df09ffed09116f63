"""What is dropped while it is open warns, and so does an interpreter that ends with it."""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
import warnings

import pytest

from locus_memory.events import subscribe
from locus_memory.registry import get_checkpointer, get_store, open_backend

NS = ("notes",)


@pytest.fixture(params=["memory", "sqlite", "sqlite::memory:", "postgresql", "redis"])
def where(request, tmp_path):
    if request.param in ("memory", "sqlite::memory:"):
        return request.param
    if request.param == "sqlite":
        return f"sqlite:{tmp_path / 'agent.db'}"
    return request.getfixturevalue(f"{request.param}_server").url


async def drop(held):
    """Drop all that is held; return what warned."""
    # A warning that is an error cannot be raised where nobody calls.
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        held.clear()
        # Tasks and callbacks of this moment may still hold it.
        await asyncio.sleep(0)
        gc.collect()
        await asyncio.sleep(0.05)
    return [str(each.message) for each in caught if "was never closed" in str(each.message)]


async def use(made):
    if hasattr(made, "store"):
        await made.store.put(NS, "unclosed", 1)
    elif hasattr(made, "put"):
        await made.put(NS, "unclosed", 1)
    else:
        await made.save({"n": 1}, "unclosed")


@pytest.mark.parametrize("make", [get_store, get_checkpointer, open_backend])
async def test_what_is_dropped_while_it_is_open(where, make):
    events = []
    unsubscribe = subscribe(events.append)
    held = [make(where)]
    await use(held[0])
    found = await drop(held)
    unsubscribe()
    named = [event.attributes["resource"] for event in events if event.name == "resource.unclosed"]
    if where == "memory":
        assert (found, named) == ([], [])
        return
    (warning,), (name,) = found, named
    assert warning.startswith(f"{name} was never closed")
    assert "async with" in warning


@pytest.mark.slow
@pytest.mark.parametrize("make", [get_store, get_checkpointer, open_backend])
async def test_what_was_closed_or_never_opened_does_not_warn(where, make):
    closed = make(where)
    await use(closed)
    await closed.close()
    never = make(where)
    async with make(where) as left:
        await use(left)
    held = [closed, never, left]
    del closed, never, left
    assert await drop(held) == []


PROGRAM = """
import asyncio, sys
from locus_memory.registry import get_store

async def main(close):
    store = get_store(sys.argv[1])
    await store.put(("notes",), "unclosed", 1)
    if close:
        await store.close()
    return store

kept = asyncio.run(main(sys.argv[2] == "close"))
"""


@pytest.mark.slow
@pytest.mark.parametrize("how", ["close", "leave"])
def test_an_interpreter_that_ends(where, how):
    done = subprocess.run(
        [sys.executable, "-W", "always", "-c", PROGRAM, where, how],
        capture_output=True,
        text=True,
        check=True,
    )
    # Connections of an event loop are closed in good order when it ends.
    warns = how == "leave" and where.startswith("sqlite")
    assert ("was never closed" in done.stderr) == warns
    assert "Event loop is closed" not in done.stderr
    assert "Task was destroyed" not in done.stderr
    if not warns:
        assert done.stderr == ""
