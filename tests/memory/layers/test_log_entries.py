"""The entries of the log: what ran, how long, and whether it failed."""

from __future__ import annotations

import asyncio
from contextlib import nullcontext
from typing import Any

import pytest

from locus_memory.backends.inmemory.store import InMemoryStore
from locus_memory.errors import BackendUnavailableError
from locus_memory.memory.layers.log import logged
from locus_memory.memory.scope import Scope
from locus_memory.store.base import BaseStore
from locus_memory.store.wrappers import StoreWrapper
from tests.memory.conftest import log_of

SCOPE = Scope(("locus_memory",))
NOW = "2026-01-01T00:00:00.000000+00:00"


@pytest.mark.parametrize("failure", [None, ValueError, asyncio.CancelledError])
async def test_what_runs_is_logged_also_if_it_fails(
    store: BaseStore, failure: type[BaseException] | None
) -> None:
    """With the class of its error, which goes on."""

    async def work() -> None:
        if failure is not None:
            raise failure

    with pytest.raises(failure) if failure is not None else nullcontext():
        async with logged(store, SCOPE, "reflect", NOW):
            await work()
    [entry] = await log_of(store, SCOPE)
    assert (entry.kind, entry.at, entry.ok) == ("reflect", NOW, failure is None)
    assert entry.error == (failure and failure.__name__)
    assert entry.duration_ms >= 0


async def test_a_log_that_cannot_be_written_spares_the_work(events: Any) -> None:
    """It is an event."""

    class Broken(StoreWrapper):
        async def put_batch(self, items: Any) -> Any:
            raise BackendUnavailableError("gone")

    async with InMemoryStore() as inner:
        async with logged(Broken(inner), SCOPE, "facts", NOW):
            done = True
        assert done
        assert events.names == ["memory.log_failed"]
