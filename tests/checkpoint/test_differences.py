from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from locus_memory.checkpoint.differences import compare, compare_messages, find_changes
from locus_memory.messages import Message
from locus_memory.state import AgentState

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=2), inner, max_size=4)
    ),
    max_leaves=12,
)


@pytest.mark.slow
@given(JSON, JSON)
@settings(deadline=None, max_examples=200)
def test_changes_are_none_exactly_when_documents_are_the_same(old, new):
    same = old == new and repr(old) == repr(new)
    if same:
        assert list(find_changes(old, new)) == []
    assert list(find_changes(old, old)) == []
    assert len(list(find_changes(old, new))) == len(list(find_changes(new, old)))


def test_true_is_not_one():
    assert [c.path for c in find_changes({"a": 1}, {"a": True})] == ["a"]


@pytest.mark.slow
@given(st.lists(st.sampled_from("abc"), max_size=8), st.lists(st.sampled_from("abc"), max_size=8))
@settings(deadline=None, max_examples=200)
def test_edits_turn_one_conversation_into_the_other(old, new):
    changes = compare_messages(old, new)
    removed = {place for place, _ in changes.removed}
    added = {place for place, _ in changes.added}
    kept = [m for place, m in enumerate(old, 1) if place not in removed]
    assert kept == [m for place, m in enumerate(new, 1) if place not in added]
    assert len(kept) == changes.common
    assert all(old[place - 1] == message for place, message in changes.removed)
    assert all(new[place - 1] == message for place, message in changes.added)


def test_states_are_compared_whatever_their_kind():
    old = AgentState(run_id="a", messages=(Message.user("hi"),), metadata={"n": 1})
    new = old.with_message(Message.assistant("hello")).with_metadata(n=2)
    found = compare(old, new)
    assert found == compare(old.to_checkpoint(), new.to_checkpoint())
    assert repr(found) == "<StateDifference: 0 messages removed, 1 added, 1 other changes>"
    assert [message["content"] for _, message in found.messages.added] == ["hello"]
    assert found.to_dict()["changes"] == [
        {"path": "metadata.n", "kind": "changed", "before": 1, "after": 2}
    ]
    assert not compare(old, old)
