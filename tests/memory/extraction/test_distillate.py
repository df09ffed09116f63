"""The answer of a model to a distillation."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from locus_memory.errors import InvalidArgumentError, ModelAnswerError
from locus_memory.memory.extraction.distillate import NoteDraft, parse_distillate
from locus_memory.memory.extraction.extractors import LLMExtractor
from locus_memory.memory.models import MemoryType
from locus_memory.messages import Message
from locus_memory.testing.model import FakeModel

CHANGE = {"op": "add", "type": "user", "key": "home", "content": "Ada lives in Graz."}
NOTE = {"text": "Ada moved.", "kind": "event", "importance": 0.7, "messages": [1, "2"]}
NOTHING = {"changes": [], "notes": []}
WHOLE = {"notes": [NOTE], "changes": [CHANGE]}


def answer_of(**parts):
    return json.dumps({**NOTHING, **parts})


def test_all_parts_are_read():
    read = parse_distillate(json.dumps(WHOLE))
    assert read.notes == (NoteDraft("Ada moved.", importance=0.7, sources=(1, 2)),)
    assert [each.key for each in read.changes] == ["home"]
    assert read.refused == ()


def test_other_parts_are_left_alone():
    """A model may still answer in the form of an earlier version."""
    answer = answer_of(notes=[NOTE], identity=[{"text": "Ada.", "messages": [1]}])
    assert parse_distillate(answer) == parse_distillate(answer_of(notes=[NOTE]))


def test_each_part_is_validated_alone():
    """One bad change or note drops none of the others."""
    changes = [CHANGE, {**CHANGE, "content": None}, {**CHANGE, "importance": 8, "type": "USER"}]
    wrong = [5, [], {}, {"text": ""}, {"text": 3}, {"text": "\u200b"}, {"text": "x" * 20_001}]
    notes = ["Ada's name is Ada.", *wrong, {"text": "Ada speaks Czech."}]
    read = parse_distillate(answer_of(notes=notes, changes=changes))
    assert [each.importance for each in read.changes] == [None, 1.0]
    assert [each.text for each in read.notes] == ["Ada's name is Ada.", "Ada speaks Czech."]
    assert [reason.split(":")[0].split(".")[:2] for reason in read.refused] == [
        ["changes", "1"],
        *(["notes", str(place)] for place in range(1, 8)),
    ]


def test_surplus_changes_and_notes_are_refused():
    changes = [{**CHANGE, "key": f"k{n}"} for n in range(50)]
    read = parse_distillate(answer_of(notes=["Ada moved."] * 41, changes=changes))
    assert [each.key for each in read.changes] == [f"k{n}" for n in range(40)]
    assert len(read.notes) == 40
    assert read.refused == ("changes: at most 40 are read", "notes: at most 40 are read")


def test_texts_alone_are_notes():
    found = parse_distillate(
        answer_of(notes=["Ada\nmoved.", {"text": "Bo.", "kind": "Task"}])
    ).notes
    assert found == (NoteDraft("Ada moved."), NoteDraft("Bo.", "task"))
    assert parse_distillate(answer_of(notes="Ada moved.")).notes == (NoteDraft("Ada moved."),)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "I have nothing to say.",
        '{"notes": [{"text": "Ada',
        json.dumps(WHOLE) + json.dumps(NOTHING),
        answer_of(notes={"kind": "event"}),
        answer_of(changes="none"),
    ],
)
def test_an_answer_that_cannot_be_read_is_repaired(text):
    with pytest.raises(InvalidArgumentError) as refused:
        parse_distillate(text)
    assert "Ada" not in str(refused.value)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4)
    ),
    max_leaves=8,
)
near = st.fixed_dictionaries(
    {},
    optional={
        "changes": json_values | st.lists(st.just(CHANGE) | json_values, max_size=3),
        "notes": json_values | st.lists(st.just(NOTE) | json_values, max_size=3),
    },
)


@pytest.mark.slow
@given(near)
def test_any_answer_is_read_or_refused(value):
    """What is read is valid, whatever a model wrote."""
    try:
        read = parse_distillate(json.dumps(value))
    except InvalidArgumentError:
        return
    assert all(note.text and "\n" not in note.text for note in read.notes)
    assert all(change.key and change.type in MemoryType for change in read.changes)


async def test_a_session_costs_one_call_and_a_repair_a_second_one():
    """The prompt has the turns numbered and the schema; places are those of the messages."""
    model = FakeModel(["no idea", json.dumps(WHOLE), "no", "no"])
    extractor = LLMExtractor(model)
    said = [Message.system("Help."), Message.user("I am Ada."), Message.assistant("Hello.")]
    made = await extractor.distill(said, [])
    system, user = model.calls[0]
    assert '"notes"' in (system.content or "")
    assert "1. user: I am Ada.\n2. assistant: Hello." in (user.content or "")
    assert [each.sources for each in made.notes] == [(1, 2)]
    assert len(model.calls) == 2
    with pytest.raises(ModelAnswerError):
        await extractor.distill(said, [])


async def test_a_small_prompt_has_room_beside_the_longer_task():
    """A budget that is enough for an extraction is enough for a distillation."""
    model = FakeModel([json.dumps(WHOLE)])
    least = next(size for size in range(400, 8000, 50) if _fits(size))
    extractor = LLMExtractor(model, max_prompt_tokens=least)
    made = await extractor.distill([Message.user("I am Ada.")], [])
    assert len(made.notes) == 1
    assert "I am Ada." in (model.calls[0][1].content or "")


def _fits(size):
    try:
        LLMExtractor(FakeModel([]), max_prompt_tokens=size)
    except InvalidArgumentError:
        return False
    return True
