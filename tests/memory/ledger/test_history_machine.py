"""Saving, deleting, undoing and forgetting, against a model of lists."""

from __future__ import annotations

import asyncio

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from locus_memory.backends.inmemory.store import InMemoryStore
from locus_memory.memory.ledger.ledger import Ledger, Retirement, Statement
from locus_memory.memory.models import Memory, MemoryType
from locus_memory.memory.scope import Scope
from locus_memory.store.item import StoreCapabilities
from locus_memory.store.wrappers import StoreWrapper
from locus_memory.testing import FakeClock

KEYS = st.sampled_from(["a", "b", "users", "000000000001"])
SCOPE = Scope(("m",))
KIND = MemoryType.USER


class PlainStore(StoreWrapper):
    capabilities = StoreCapabilities()


class Modelled:
    """One key: its versions by number, which is current, and the changes not undone yet."""

    def __init__(self):
        self.versions = {}
        self.supersedes = {}
        self.current = None
        self.changes = []

    def write(self, content):
        if self.current is not None and self.versions[self.current] == content:
            return
        number = max(self.versions, default=0) + 1
        self.versions[number] = content
        self.supersedes[number] = self.current
        self.changes.append(self.current)
        self.current = number

    def retire(self):
        if self.current is not None:
            self.changes.append(self.current)
            self.current = None

    def undo(self):
        if self.changes:
            self.current = self.changes.pop()

    def searched(self):
        """Return what text search sees: what is current, and the three versions before."""
        number, contents = self.current, set()
        for _ in range(4):
            if number is not None:
                contents.add(self.versions[number])
                number = self.supersedes[number]
        return contents

    def history(self):
        past = sorted((n for n in self.versions if n != self.current), reverse=True)
        numbers = past if self.current is None else [self.current, *past]
        return [self.versions[number] for number in numbers]


class HistoryMachine(RuleBasedStateMachine):
    def __init__(self):
        super().__init__()
        self.runner = asyncio.Runner()
        self.model = {}
        self.count = 0

    @initialize(plain=st.booleans())
    def start(self, plain):
        clock = FakeClock()
        store = InMemoryStore(clock=clock)
        self.store = store
        self.ledger = Ledger(PlainStore(store) if plain else store, 999, clock=clock)

    def run(self, work):
        return self.runner.run(work)

    def of(self, key):
        return self.model.setdefault(key, Modelled())

    @rule(key=KEYS, again=st.booleans())
    def save(self, key, again):
        self.count += not again
        content = f"Number {self.count}"
        is_known = any(other != key and self._current(other) == content for other in self.model)
        written = self.run(self.ledger.apply(SCOPE, [Statement(Memory(KIND, key, content))]))
        if is_known and self._current(key) is None:
            assert written == []  # a duplicate
            return
        self.of(key).write(content)

    def _current(self, key):
        each = self.of(key)
        return None if each.current is None else each.versions[each.current]

    async def _stored(self):
        return {memory.key: memory.content async for memory in self.ledger.memories(SCOPE, KIND)}

    @rule(key=KEYS)
    def delete(self, key):
        self.run(self.ledger.apply(SCOPE, [Retirement(KIND, key)]))
        self.of(key).retire()

    @rule(key=KEYS)
    def undo(self, key):
        restored = self.run(self.ledger.undo(SCOPE, KIND, key))
        had = bool(self.of(key).changes)
        self.of(key).undo()
        expected = self._current(key) if had else None
        assert self._current(key) == expected or not had
        assert (None if restored is None else restored.content) == expected

    @rule(key=KEYS)
    def forget(self, key):
        erased = self.run(self.ledger.forget(SCOPE, KIND, key))
        assert erased == len(self.of(key).versions)
        del self.model[key]

    @invariant()
    def the_history_is_the_models(self):
        for key, modelled in self.model.items():
            found = self.run(self.ledger.history(SCOPE, KIND, key))
            assert [memory.content for memory in found] == modelled.history()
            assert len({memory.metadata["sequence"] for memory in found}) == len(found)

    @invariant()
    def what_is_current_is_what_is_listed(self):
        if hasattr(self, "ledger"):
            expected = {k: self._current(k) for k in self.model if self._current(k) is not None}
            assert self.run(self._stored()) == expected

    @invariant()
    def what_is_searched_is_what_is_true_or_was_superseded(self):
        for number in range(max(1, self.count - 6), self.count + 1):
            found = self.run(self.store.search(SCOPE.current, str(number), 99))
            searched = {key: each.searched() for key, each in self.model.items()}
            expected = {key for key in searched if f"Number {number}" in searched[key]}
            assert {item.key.removeprefix("user:") for item in found} == expected

    def teardown(self):
        self.runner.close()


TestHistory = HistoryMachine.TestCase
TestHistory.settings = settings(deadline=None, max_examples=40, stateful_step_count=25)
