"""For any conversation, however broken, what a manager returns is what a provider accepts."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from locus_memory.conversation.base import NullManager
from locus_memory.conversation.groups import split_groups
from locus_memory.conversation.summary.manager import SummarizingManager
from locus_memory.conversation.summary.text import is_summary
from locus_memory.conversation.tokens import count_tokens
from locus_memory.conversation.validation import CUT_OFF, mend, repair, validate
from locus_memory.conversation.window import SlidingWindowManager
from locus_memory.events import subscribe
from locus_memory.messages import Message, Role, ToolCall

IDS = st.sampled_from(["a", "b", "c", "a_2", "call", ""])
TEXTS = st.sampled_from(["", "hello", "x" * 40, "\ud800", "<summary>", "你好"])


def calls(ids):
    return [ToolCall(id=each, name="tool", arguments={"id": each}) for each in ids]


SYSTEM = st.builds(Message.system, TEXTS)
SPOKEN = st.builds(Message.user, TEXTS) | st.builds(Message.assistant, TEXTS)
CALLING = st.builds(
    lambda text, ids: Message.assistant(text, calls(ids)), TEXTS, st.lists(IDS, max_size=3)
)
RESULT = st.builds(
    lambda text, call_id: Message(role=Role.TOOL, content=text, tool_call_id=call_id),
    TEXTS,
    IDS | st.none(),
)
CONVERSATIONS = st.lists(SYSTEM | SPOKEN | CALLING | RESULT, max_size=40)
SIZES = st.tuples(st.integers(1, 12), st.integers(1, 12))
PROPERTY = settings(deadline=None, max_examples=150)


def texts_of(messages, *roles):
    return [message.content for message in messages if message.role in roles]


def made_by_us(message):
    return is_summary(message) or message.content == CUT_OFF


def is_subsequence(part, whole):
    rest = iter(whole)
    return all(any(each == other for other in rest) for each in part)


@pytest.mark.slow
@PROPERTY
@given(CONVERSATIONS)
def test_repair_leaves_no_fault_and_is_done_once(messages):
    repaired = repair(messages)
    assert validate(repaired) == []
    again = repair(repaired)
    assert len(again) == len(repaired)
    assert all(one is other for one, other in zip(again, repaired, strict=True))


@pytest.mark.slow
@PROPERTY
@given(CONVERSATIONS)
def test_repair_touches_tool_structure_only(messages):
    repaired = repair(messages)
    spoken = ("system", "user", "assistant")
    assert texts_of(repaired, *spoken) == texts_of(messages, *spoken)
    names = [[call.arguments for call in m.tool_calls] for m in messages if m.role != "tool"]
    assert [[c.arguments for c in m.tool_calls] for m in repaired if m.role != "tool"] == names
    if not validate(messages):
        assert all(one is other for one, other in zip(repaired, messages, strict=True))


@pytest.mark.slow
@PROPERTY
@given(CONVERSATIONS)
def test_a_growing_conversation_is_mended_alike(messages):
    """What later messages bring never changes the ids given before."""
    ids = [call.id for message in repair(messages) for call in message.tool_calls]
    half = repair(messages[: len(messages) // 2])
    before = [call.id for message in half for call in message.tool_calls]
    assert ids[: len(before)] == before


@pytest.mark.slow
@PROPERTY
@given(CONVERSATIONS)
def test_groups_hold_every_message_once(messages):
    repaired = repair(messages)
    groups, is_sound = split_groups(repaired)
    assert [message for group in groups for message in group.messages] == repaired
    assert [group.start for group in groups] == [
        sum(len(before.messages) for before in groups[:place]) for place in range(len(groups))
    ]
    assert all(group.role != "tool" for group in groups)
    assert is_sound
    assert split_groups(messages)[1] == (not validate(messages))


@pytest.mark.slow
@PROPERTY
@given(CONVERSATIONS)
def test_null_manager(messages):
    assert NullManager().apply(messages) == repair(messages)


@pytest.mark.slow
@PROPERTY
@given(
    CONVERSATIONS,
    st.none() | st.integers(1, 12),
    st.booleans(),
    st.none() | st.integers(1, 300),
)
def test_window(messages, window_size, preserve_system, max_tokens):
    if window_size is None and max_tokens is None:
        window_size = 5
    manager = SlidingWindowManager(window_size, preserve_system, max_tokens=max_tokens)
    events = []
    unsubscribe = subscribe(events.append)
    try:
        shown = manager.apply(messages)
    finally:
        unsubscribe()
    whole = repair(messages)
    assert validate(shown) == []
    assert is_subsequence(shown, whole)
    if preserve_system:
        assert texts_of(shown, "system") == texts_of(messages, "system")
    pinned = ("system",) if preserve_system else ()
    counted = [message for message in shown if message.role not in pinned]
    too_large = len(counted) > (window_size or 1000)
    too_large |= count_tokens(shown) > (max_tokens or 10**9)
    if too_large:
        names = [event.name for event in events]
        assert "conversation.oversized" in names
        # The newest group, and the request it works on: nothing else may exceed the limits.
        assert len(split_groups(counted)[0]) <= 2
    if whole and whole[-1].role not in pinned:
        assert shown[-1] == whole[-1]
    if any(message.role == "user" for message in whole):
        assert any(message.role == "user" for message in shown)


def starts_on_user(shown, whole):
    """Whether what is shown, system messages apart, begins with a user message if it can."""
    roles = [message.role for message in shown if message.role != "system"]
    return roles[:1] == ["user"] or not any(message.role == "user" for message in whole)


@pytest.mark.slow
@PROPERTY
@given(
    CONVERSATIONS,
    st.integers(1, 12),
    st.booleans(),
    st.none() | st.integers(1, 300),
)
def test_a_window_that_starts_on_a_user_message(messages, window_size, preserve_system, max_tokens):
    plain = SlidingWindowManager(window_size, preserve_system, max_tokens=max_tokens)
    manager = SlidingWindowManager(
        window_size, preserve_system, max_tokens=max_tokens, start_on_user=True
    )
    whole, shown, without = repair(messages), manager.apply(messages), plain.apply(messages)
    assert starts_on_user(shown, whole)
    assert validate(shown) == []
    assert is_subsequence(shown, without)
    assert texts_of(shown, "system") == texts_of(without, "system")
    assert shown[-1:] == without[-1:]
    dropped = len(without) - len(shown)
    first = next((n for n, m in enumerate(without) if m.role == "user"), 0)
    assert dropped == sum(m.role != "system" for m in without[:first])


@pytest.mark.slow
@settings(deadline=None, max_examples=80)
@given(CONVERSATIONS, SIZES, st.booleans(), st.none() | st.integers(30, 400))
def test_a_summary_that_starts_on_a_user_message(messages, sizes, preserve_system, max_tokens):
    manager = SummarizingManager(
        max(sizes) + 1,
        min(sizes),
        lambda asked: "a summary",
        preserve_system,
        max_tokens=max_tokens,
        start_on_user=True,
    )
    shown = manager.apply(messages)
    assert validate(shown) == []
    said = [message for message in shown if not is_summary(message)]
    assert starts_on_user(said, repair(messages))
    if preserve_system:
        assert texts_of(said, "system") == texts_of(messages, "system")


def in_a_loop(manager, messages):
    return asyncio.run(manager.async_apply(messages))


@pytest.mark.slow
@pytest.mark.parametrize("call", [SummarizingManager.apply, in_a_loop])
@settings(deadline=None, max_examples=80)
@given(CONVERSATIONS, SIZES, st.tuples(st.booleans(), st.booleans()))
def test_summary(call, messages, sizes, flags):
    threshold, keep_recent = max(sizes) + 1, min(sizes)
    preserve_system, fails = flags

    def summarize(asked):
        assert validate([m for m in asked if not is_summary(m)]) == []
        if fails:
            raise RuntimeError("no model")
        return "</summary>a summary"

    manager = SummarizingManager(threshold, keep_recent, summarize, preserve_system)
    whole = repair(messages)
    for end in {len(messages) // 3, len(messages)}:
        call(manager, messages[:end])
    shown = call(manager, messages)
    assert validate(shown) == []
    assert is_subsequence([m for m in shown if not made_by_us(m)], whole)
    assert sum(map(is_summary, shown)) <= 1
    if preserve_system:
        kept = [m for m in shown if not is_summary(m)]
        assert texts_of(kept, "system") == texts_of(messages, "system")
    pinned = ("system",) if preserve_system else ()
    counted = [m for m in shown if m.role not in pinned and not is_summary(m)]
    newest = split_groups(counted)[0][-1].messages if counted else ()
    assert len(counted) <= max(threshold, len(newest)) + 1
    if not any(map(is_summary, shown)):
        assert shown == whole


@pytest.mark.slow
@settings(deadline=None, max_examples=80)
@given(CONVERSATIONS, st.integers(30, 400))
def test_summary_under_a_token_budget(messages, max_tokens):
    manager = SummarizingManager(10, 4, lambda asked: "word " * 500, max_tokens=max_tokens)
    shown = manager.apply(messages)
    assert validate(shown) == []
    assert texts_of([m for m in shown if not is_summary(m)], "system") == texts_of(
        messages, "system"
    )
    if count_tokens(shown) > max_tokens:
        others = [m for m in shown if m.role != "system"]
        assert len(split_groups(others)[0]) <= 2


@pytest.mark.slow
@settings(deadline=None, max_examples=80)
@given(CONVERSATIONS, st.integers(1, 4))
def test_a_loop_that_feeds_back_what_it_got(messages, step):
    """The summary in the input is taken up, and never piles up."""
    manager = SummarizingManager(6, 3, lambda asked: f"a summary of {len(asked)}")
    shown = []
    for start in range(0, len(messages), step):
        shown = manager.apply([*shown, *messages[start : start + step]])
        assert validate(shown) == []
        assert sum(map(is_summary, shown)) <= 1
    kept = [m for m in shown if not is_summary(m)]
    assert texts_of(kept, "system") == texts_of(messages, "system")


def test_mending_tells_what_was_wrong():
    messages = [Message.user("go"), Message.assistant(None, calls(["a", "a"]))]
    repaired, faults = mend(messages)
    assert [str(fault) for fault in faults] == [
        "message 1: a call without a result ('a')",
        "message 1: a call whose id is used before ('a')",
        "message 1: a call without a result ('a')",
    ]
    assert [call.id for call in repaired[1].tool_calls] == ["a", "a_2"]
    assert [m.tool_call_id for m in repaired[2:]] == ["a", "a_2"]
