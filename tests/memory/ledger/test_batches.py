"""Several changes in one write: what is the same is decided by what each key says at its end."""

from __future__ import annotations

import pytest

from locus_memory.memory.ledger.ledger import Ledger, Retirement, Statement
from locus_memory.memory.models import Memory, MemoryType
from locus_memory.memory.scope import Scope

SCOPE = Scope(("app",))


def says(key, content):
    return Statement(Memory(MemoryType.USER, key, content))


def gone(key):
    return Retirement(MemoryType.USER, key)


@pytest.mark.parametrize(
    ("stored", "edits", "left"),
    [
        ((), [says("a", "Rome"), says("a", "Oslo"), says("b", "Rome")], {"a": "Oslo", "b": "Rome"}),
        ((), [says("a", "Rome"), says("b", "Rome"), says("a", "Oslo")], {"a": "Oslo", "b": "Rome"}),
        ((), [says("a", "Rome"), says("a", "Oslo"), says("b", "Oslo")], {"a": "Oslo"}),
        ((), [says("a", "Rome"), says("b", "Rome")], {"a": "Rome"}),
        ((), [says("a", "Rome"), says("b", "Rome"), gone("a")], {"b": "Rome"}),
        ([says("b", "Rome")], [gone("a"), says("a", "Rome")], {"b": "Rome"}),
        ([says("b", "Rome")], [says("a", "Rome"), gone("b")], {"a": "Rome"}),
        ([says("b", "Rome")], [says("a", "Rome"), says("b", "Oslo")], {"a": "Rome", "b": "Oslo"}),
        ([says("b", "Rome")], [says("b", "Oslo"), says("a", "Oslo")], {"b": "Oslo"}),
    ],
)
async def test_a_key_counts_by_what_it_says_at_the_end(store, clock, stored, edits, left):
    ledger = Ledger(store, 20, clock=clock)
    await ledger.apply(SCOPE, stored)
    await ledger.apply(SCOPE, edits)
    found = {each.key: each.content async for each in ledger.memories(SCOPE, MemoryType.USER)}
    assert found == left
