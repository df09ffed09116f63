import dataclasses

import pytest

from locus_memory.conversation.base import NullManager
from locus_memory.conversation.validation import CUT_OFF, Fault, repair, validate
from locus_memory.events import subscribe
from locus_memory.messages import Message, ToolCall, ToolResult

USER = Message.user("go")


def calling(*ids):
    return Message.assistant("let me see", [ToolCall(id=each, name="look") for each in ids])


def result(call_id, content="done"):
    return Message.tool(ToolResult(tool_call_id=call_id, name="look", content=content))


def kinds(messages):
    return [(fault.kind, fault.index, fault.tool_call_id) for fault in validate(messages)]


def test_a_sound_conversation_is_returned_as_it_is():
    messages = [USER, calling("a", "b"), result("b"), result("a"), Message.assistant("done")]
    assert validate(messages) == []
    repaired = repair(messages)
    assert all(one is other for one, other in zip(repaired, messages, strict=True))
    assert validate([]) == repair([]) == []


def test_an_orphan_result_is_dropped():
    nameless = Message(role="tool", content="?")
    messages = [result("x"), USER, nameless, calling("a"), result("a")]
    assert kinds(messages) == [("orphan_result", 0, "x"), ("orphan_result", 2, None)]
    assert repair(messages) == [USER, *messages[3:]]


def test_a_cut_off_call_gets_a_result_that_says_so():
    messages = [USER, calling("a", "b"), result("a"), Message.user("still there?")]
    assert kinds(messages) == [("missing_result", 1, "b")]
    repaired = repair(messages)
    assert repaired[:3] == messages[:3]
    assert repaired[4] is messages[3]
    assert repaired[3] == Message(role="tool", content=CUT_OFF, tool_call_id="b", name="look")


def test_a_displaced_result_moves_to_its_call():
    late, early = result("a", "late"), result("b", "early")
    messages = [early, calling("a", "b"), USER, late]
    assert kinds(messages) == [("misplaced_result", 0, "b"), ("misplaced_result", 3, "a")]
    assert repair(messages) == [messages[1], early, late, USER]


def test_a_system_message_between_call_and_result_moves_behind():
    system = Message.system("be brief")
    messages = [USER, calling("a"), system, result("a")]
    assert kinds(messages) == [("misplaced_result", 3, "a")]
    assert repair(messages) == [USER, messages[1], messages[3], system]


def test_a_second_result_is_dropped():
    messages = [USER, calling("a"), result("a", "first"), result("a", "second")]
    assert kinds(messages) == [("duplicate_result", 3, "a")]
    assert repair(messages) == messages[:3]


def test_an_id_used_again_is_renamed_with_its_result():
    """Some providers number calls from zero in every turn."""
    messages = [calling("0"), result("0", "one"), USER, calling("0", "0_2"), result("0", "two")]
    messages += [result("0_2", "three")]
    assert kinds(messages) == [("duplicate_call_id", 3, "0")]
    repaired = repair(messages)
    assert [call.id for call in repaired[3].tool_calls] == ["0_2", "0_2_2"]
    assert [(m.tool_call_id, m.content) for m in repaired[4:]] == [
        ("0_2", "two"),
        ("0_2_2", "three"),
    ]
    assert repaired[:3] == messages[:3]


def test_ids_that_repeat_within_a_batch_pair_up_in_order():
    messages = [calling("a", "a"), result("a", "one"), result("a", "two")]
    assert kinds(messages) == [("duplicate_call_id", 0, "a")]
    repaired = repair(messages)
    assert [(m.tool_call_id, m.content) for m in repaired[1:]] == [("a", "one"), ("a_2", "two")]


def test_a_call_without_an_id_gets_one():
    messages = [calling("")]
    assert kinds(messages) == [("missing_call_id", 0, None), ("missing_result", 0, None)]
    repaired = repair(messages)
    assert repaired[0].tool_calls[0].id == repaired[1].tool_call_id == "call_2"


def test_a_result_goes_to_the_nearest_call_before_it():
    messages = [calling("a"), USER, calling("a"), USER, result("a")]
    repaired = repair(messages)
    assert [m.content for m in repaired if m.role == "tool"] == [CUT_OFF, "done"]
    assert repaired[4] == messages[4].model_copy(update={"tool_call_id": "a_2"})


@pytest.mark.parametrize(
    ("fault", "sentence"),
    [
        (Fault("orphan_result", 3, "c1"), "message 3: a result without a call ('c1')"),
        (Fault("orphan_result", 3, None), "message 3: a result without a call"),
        (Fault("missing_result", 0, "c1"), "message 0: a call without a result ('c1')"),
    ],
)
def test_a_fault_reads_as_a_sentence(fault, sentence):
    assert str(fault) == sentence
    with pytest.raises(dataclasses.FrozenInstanceError):
        fault.index = 1


def test_a_manager_tells_what_it_repaired():
    events = []
    unsubscribe = subscribe(events.append)
    manager = NullManager()
    assert manager.apply([USER]) == [USER]
    assert events == []
    assert manager.apply([USER, result("x"), calling("a")])[0] is USER
    unsubscribe()
    [event] = events
    assert event.name == "conversation.repaired"
    assert event.attributes == {"faults": 2, "kinds": "missing_result, orphan_result"}
    assert repr(manager) == "NullManager()"


async def test_a_manager_may_be_used_without_waiting():
    async with NullManager() as manager:
        assert await manager.async_apply((USER,)) == [USER]


def test_an_id_used_a_thousand_times():
    messages = [m for _ in range(1_000) for m in (calling("0"), result("0"))]
    repaired = repair(messages)
    assert len({call.id for m in repaired for call in m.tool_calls}) == 1_000
    assert validate(repaired) == []
