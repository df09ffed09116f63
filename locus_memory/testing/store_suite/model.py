"""The store suite: random sequences of calls, compared with a plain dict."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Coroutine
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, Final, cast

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from locus_memory.errors import VersionConflictError
from locus_memory.store.base import BaseStore
from locus_memory.store.item import Namespace, StoreItem, timestamp
from locus_memory.testing.fakes import FakeClock
from locus_memory.testing.store_suite.base import PROPERTY, StoreSuite, goes_by_writes

__all__ = ["ModelTests"]

LIVES: Final = settings(PROPERTY, max_examples=30, stateful_step_count=30)

_namespaces = st.sampled_from([(), ("a",), ("a", "b"), ("a", "b", "c"), ("a/b",), ("ab",), ("*",)])
_keys = st.sampled_from(["k", "kk", "k/", "k\x00", "K", "é", "🦊", "*", "%"])
_values = st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=5)
_versions = st.none() | st.integers(0, 3)


class StoreModel(RuleBasedStateMachine):
    """Applies the same calls to the store and to a dict; each run has its own label.

    Args:
        store: The store under test.
        runner: Its event loop.
        clock: Its clock.
        serial: The number of this run.
    """

    def __init__(
        self, store: BaseStore, runner: asyncio.Runner, clock: FakeClock, serial: int
    ) -> None:
        super().__init__()
        self.store, self.clock, self.run = store, clock, runner.run
        self.root = f"run-{serial}"
        # In the order of their writes.
        self.entries: dict[tuple[Namespace, str], StoreItem] = {}

    @rule(
        labels=_namespaces,
        key=_keys,
        value=_values,
        ttl=st.none() | st.integers(1, 20),
        if_version=_versions,
    )
    def put(
        self, labels: Namespace, key: str, *, value: Any, ttl: int | None, if_version: int | None
    ) -> None:
        """Put, with or without a TTL and a condition."""
        namespace = (self.root, *labels)
        ttl = ttl if self.store.capabilities.ttl else None
        call = self.store.put(namespace, key, value, ttl=ttl, if_version=if_version)
        old = self.entries.get((namespace, key))
        version = 0 if old is None else old.version
        if not self.holds(call, if_version, version, version + 1):
            return
        now = self.clock()
        self.entries.pop((namespace, key), None)
        self.entries[namespace, key] = StoreItem(
            namespace=namespace,
            key=key,
            value=value,
            metadata={},
            created_at=timestamp(now) if old is None else old.created_at,
            updated_at=timestamp(now),
            version=version + 1,
            expires_at=None if ttl is None else timestamp(now + ttl),
        )

    @rule(labels=_namespaces, key=_keys, if_version=_versions)
    def delete(self, labels: Namespace, key: str, if_version: int | None) -> None:
        """Delete, with or without a condition."""
        namespace = (self.root, *labels)
        old = self.entries.get((namespace, key))
        call = self.store.delete(namespace, key, if_version=if_version)
        if self.holds(call, if_version, 0 if old is None else old.version, old is not None):
            self.entries.pop((namespace, key), None)

    def holds(
        self, call: Coroutine[Any, Any, Any], if_version: int | None, actual: int, result: Any
    ) -> bool:
        """Whether the condition of a write holds; the store must agree."""
        if if_version in (None, actual):
            assert self.run(call) == result
            return True
        with pytest.raises(VersionConflictError) as caught:
            self.run(call)
        assert (caught.value.expected, caught.value.actual) == (if_version, actual)
        return False

    @rule(labels=_namespaces, recursive=st.booleans())
    def clear(self, labels: Namespace, *, recursive: bool) -> None:
        """Clear a namespace."""
        recursive = recursive and self.store.capabilities.list_namespaces
        doomed = self.within((self.root, *labels), recursive=recursive)
        namespace = (self.root, *labels)
        count = self.run(self.store.clear_namespace(namespace, recursive=recursive))
        assert count == len(doomed)
        for name in doomed:
            del self.entries[name]

    @rule(seconds=st.integers(1, 15))
    def advance(self, seconds: int) -> None:
        """Move the clock."""
        self.clock.advance(seconds)
        now = timestamp(self.clock())
        for name, entry in list(self.entries.items()):
            if entry.expires_at is not None and entry.expires_at <= now:
                del self.entries[name]

    @rule(labels=_namespaces, key=_keys)
    def get(self, labels: Namespace, key: str) -> None:
        """Read one item."""
        namespace = (self.root, *labels)
        entry = self.entries.get((namespace, key))
        item = self.run(self.store.get_item(namespace, key))
        assert self.run(self.store.exists(namespace, key)) is (entry is not None)
        assert item == entry

    @rule(
        labels=_namespaces,
        limit=st.integers(0, 5),
        prefix=st.none() | st.sampled_from(["k", "é", "%"]),
        after=st.none() | _keys,
        descending=st.booleans(),
    )
    def scan(
        self,
        labels: Namespace,
        *,
        limit: int,
        prefix: str | None,
        after: str | None,
        descending: bool,
    ) -> None:
        """Read a window of one namespace."""
        namespace = (self.root, *labels)
        names = sorted(self.within(namespace, recursive=False), reverse=descending)
        if after is not None:
            names = [n for n in names if (n[1] < after if descending else n[1] > after)]
        wanted = [n for n in names if n[1].startswith(prefix or "")][:limit]
        call = self.store.scan(namespace, limit, prefix=prefix, after=after, descending=descending)
        assert self.run(call) == [self.entries[name] for name in wanted]

    @rule(labels=_namespaces, limit=st.integers(1, 5), offset=st.integers(0, 3))
    def search(self, labels: Namespace, limit: int, offset: int) -> None:
        """Read the newest items of one tree."""
        recursive = self.store.capabilities.list_namespaces
        namespace = (self.root, *labels)
        names = self.within(namespace, recursive=recursive)
        if goes_by_writes(self.store):
            names.reverse()
        else:
            names.sort()
            names.sort(key=lambda name: self.entries[name].updated_at, reverse=True)
        call = self.store.search(namespace, limit=limit, offset=offset, recursive=recursive)
        wanted = names[offset : offset + limit]
        assert self.run(call) == [self.entries[name] for name in wanted]

    @rule(depth=st.none() | st.integers(1, 4), limit=st.integers(0, 8))
    def list_namespaces(self, depth: int | None, limit: int) -> None:
        """List the namespaces of this run."""
        if self.store.capabilities.list_namespaces:
            wanted = sorted({namespace[:depth] for namespace, _ in self.entries})[:limit]
            call = self.store.list_namespaces((self.root,), limit, max_depth=depth)
            assert self.run(call) == wanted

    @invariant()
    def all_values_are_there(self) -> None:
        """Read all items in one call."""
        found = self.run(self.store.get_batch(self.entries))
        assert found == {name: entry.value for name, entry in self.entries.items()}

    def within(self, namespace: Namespace, *, recursive: bool) -> list[tuple[Namespace, str]]:
        """Return the names of a namespace, or of its tree."""
        depth = len(namespace)
        return [
            name
            for name in self.entries
            if (name[0][:depth] if recursive else name[0]) == namespace
        ]


class ModelTests(StoreSuite):
    """The state machine."""

    async def test_a_store_behaves_like_a_dict(self, clock: FakeClock, tmp_path: Path) -> None:
        # The machine is not async: it has its own thread, with an event loop for the store.
        await asyncio.to_thread(live, self.make_store(clock, tmp_path), clock)


def live(manager: AbstractAsyncContextManager[BaseStore], clock: FakeClock) -> None:
    """Run the state machine on the store of `manager`."""
    serial = itertools.count()
    with asyncio.Runner() as runner:
        store = runner.run(manager.__aenter__())
        try:
            run_state_machine_as_test(
                cast("Any", lambda: StoreModel(store, runner, clock, next(serial))), settings=LIVES
            )
        finally:
            runner.run(manager.__aexit__(None, None, None))
