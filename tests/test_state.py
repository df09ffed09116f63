from __future__ import annotations

import pickle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from locus_memory._internal.sameness import same
from locus_memory.errors import InvalidMessageError
from locus_memory.messages import Message, ToolCall
from locus_memory.state import AgentState, shared_checkpoint
from locus_memory.store.json_values import decode_json, encode_json
from locus_memory.testing.store_suite.base import json_objects

messages = st.builds(Message.user, st.text(max_size=10)) | st.builds(
    Message.assistant,
    st.none() | st.text(max_size=10),
    st.lists(st.builds(ToolCall, name=st.text(max_size=5), arguments=json_objects), max_size=2),
)
states = st.builds(
    AgentState,
    run_id=st.text(max_size=5),
    agent_id=st.none() | st.text(max_size=5),
    messages=st.lists(messages, max_size=4).map(tuple),
    iteration=st.integers(0, 1000),
    metadata=json_objects,
)
quick = settings(deadline=None, max_examples=60)


def fresh(state):
    """Return what the state would write if it remembered nothing."""
    return AgentState.model_validate(state.model_dump()).to_checkpoint()


@pytest.mark.slow
@quick
@given(states)
def test_a_state_round_trips(state):
    document = state.to_checkpoint()
    assert decode_json(encode_json(document)) == document
    assert AgentState.from_checkpoint(document) == state
    assert AgentState.from_checkpoint(document).to_checkpoint() == document


@pytest.mark.slow
@quick
@given(states, st.lists(messages, max_size=3), json_objects)
def test_no_change_leaves_a_stale_document(state, added, metadata):
    state.to_checkpoint()
    for changed in (
        state.with_messages(added),
        state.with_iteration(state.iteration + 1),
        state.model_copy(update={"messages": tuple(added)}),
        state.model_copy(update={"metadata": metadata, "agent_id": "other"}),
        state.model_copy(deep=True),
        state.with_messages(added).model_copy(update={"messages": state.messages}),
    ):
        assert changed.to_checkpoint() == fresh(changed)
    assert state.to_checkpoint() == fresh(state)


def test_an_empty_state_is_small():
    assert AgentState(run_id="r").to_checkpoint() == {"run_id": "r", "messages": []}


def test_a_longer_state_serialises_only_what_is_new():
    state = AgentState().with_messages([Message.user("one"), Message.assistant("two")])
    before = shared_checkpoint(state)["messages"]
    longer = state.with_message(Message.user("three"))
    after = shared_checkpoint(longer)["messages"]
    assert [one is other for one, other in zip(before, after, strict=False)] == [True, True]
    assert len(before) == 2
    assert len(after) == 3
    assert shared_checkpoint(longer.with_iteration(1))["messages"] is after
    rebuilt = AgentState(run_id="r", messages=longer.messages)
    assert shared_checkpoint(rebuilt)["messages"][0] is before[0]


def test_what_is_returned_is_the_callers_own():
    message = Message.user("one").model_copy(update={"metadata": {"tags": ["a"]}})
    state = AgentState(run_id="r", metadata={"plan": [1]}).with_message(message)
    for _ in range(2):
        document = state.to_checkpoint()
        assert document == fresh(state)
        document["messages"][0]["metadata"]["tags"].append("b")
        document["messages"].clear()
        document["metadata"]["plan"].clear()
        message.to_checkpoint().clear()
    assert state.metadata == {"plan": [1]}
    assert message.metadata == {"tags": ["a"]}


@pytest.mark.slow
@quick
@given(states, st.lists(messages, max_size=3), st.data())
def test_a_mapping_changed_in_place_is_written_as_it_is(state, added, data):
    state = state.with_messages(added)
    for _ in range(data.draw(st.integers(1, 3))):
        shared_checkpoint(state)
        mappings = [state.metadata]
        for message in state.messages:
            mappings += [message.metadata, *(call.arguments for call in message.tool_calls)]
        mapping = data.draw(st.sampled_from(mappings))
        if data.draw(st.booleans()):
            mapping.clear()
        mapping["x"] = data.draw(st.sampled_from([1, True, 1.0, 0.0, -0.0, [1], [True], {}, "y"]))
        longer = state.with_message(Message.user("more"))
        for changed in (state, longer, state.model_copy(deep=True)):
            assert same(changed.to_checkpoint(), fresh(changed))


def test_what_a_class_of_ones_own_adds_may_change():
    class Note(Message):
        marks: list[str]

    note = Note(role="user", marks=["a"])
    state = AgentState(run_id="r").with_messages([Message.user("one"), note])
    assert state.to_checkpoint()["messages"][1] == {"role": "user", "marks": ["a"]}
    note.marks.append("b")
    assert state.to_checkpoint()["messages"][1] == {"role": "user", "marks": ["a", "b"]}


def test_two_branches_do_not_share_their_ends():
    state = AgentState(run_id="r").with_message(Message.user("root"))
    left, right = (state.with_message(Message.user(side)) for side in ("left", "right"))
    assert [m["content"] for m in left.to_checkpoint()["messages"]] == ["root", "left"]
    assert [m["content"] for m in right.to_checkpoint()["messages"]] == ["root", "right"]
    assert len(state.to_checkpoint()["messages"]) == 1


def test_metadata_is_merged_into_a_new_state():
    state = AgentState(metadata={"a": 1, "b": 1})
    assert state.with_metadata(b=2, c=3).metadata == {"a": 1, "b": 2, "c": 3}
    assert state.metadata == {"a": 1, "b": 1}


def test_a_state_is_frozen_and_names_its_run():
    state = AgentState()
    assert state.run_id != AgentState().run_id
    with pytest.raises(ValidationError):
        state.iteration = 5


def test_a_pickled_state_is_the_same():
    state = AgentState().with_message(Message.user("one"))
    state.to_checkpoint()
    again = pickle.loads(pickle.dumps(state))
    assert again == state
    assert again.with_message(Message.user("two")).to_checkpoint()["messages"] == [
        {"role": "user", "content": "one"},
        {"role": "user", "content": "two"},
    ]


@pytest.mark.parametrize(
    "document",
    [{"messages": [{"role": "robot"}]}, {"extra": 1}, {"iteration": "many"}, {"messages": [1]}],
    ids=repr,
)
def test_what_is_no_state_is_refused(document):
    with pytest.raises(ValidationError):
        AgentState.from_checkpoint(document)


@pytest.mark.parametrize("given", ["hi", 5, None, {"role": "user", "content": "hi"}, ["hi"]])
def test_what_is_no_message_is_refused_with_the_remedy(given):
    with pytest.raises(InvalidMessageError, match=r'Message\.user\("\.\.\."\) makes one') as raised:
        AgentState().with_message(given)
    assert isinstance(raised.value, TypeError)
    with pytest.raises(InvalidMessageError, match=f"not {type(given).__name__}"):
        AgentState().with_messages([Message.user("fine"), given])


@pytest.mark.parametrize("given", ["hi", 5, None, Message.user("hi")])
def test_what_is_no_list_of_messages_is_refused_with_the_remedy(given):
    with pytest.raises(InvalidMessageError, match="with_message takes one"):
        AgentState().with_messages(given)


def test_messages_may_come_from_anything_that_yields_them():
    added = (Message.user(each) for each in "ab")
    assert [each.content for each in AgentState().with_messages(added).messages] == ["a", "b"]


def test_a_repr_is_short_whatever_the_state_holds():
    long = "x" * 100_000
    state = AgentState(run_id="r", metadata={"k": long}).with_messages([Message.user(long)] * 9)
    assert repr(state).startswith("<AgentState: 9 messages, run_id='r', iteration=0, metadata=")
    assert repr(Message.user("hi")) == "Message(role=<Role.USER: 'user'>, content='hi')"
    assert max(map(len, (repr(state), repr(state.messages[0]), str(state)))) < 1000
