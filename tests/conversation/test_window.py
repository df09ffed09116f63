import pytest

from locus_memory.conversation.tokens import count_tokens
from locus_memory.conversation.validation import validate
from locus_memory.conversation.window import SlidingWindowManager
from locus_memory.errors import InvalidArgumentError
from locus_memory.events import subscribe
from locus_memory.messages import Message, ToolCall, ToolResult

SYSTEM = Message.system("be brief")


def turns(count):
    return [
        message
        for number in range(count)
        for message in (Message.user(f"question {number}"), Message.assistant(f"answer {number}"))
    ]


def batch(*ids):
    """An assistant message that calls several tools at once, with the results."""
    calls = [ToolCall(id=each, name="look") for each in ids]
    results = [Message.tool(ToolResult(tool_call_id=e, name="look", content=e)) for e in ids]
    return [Message.assistant(None, calls), *results]


@pytest.fixture
def events():
    seen = []
    unsubscribe = subscribe(seen.append)
    yield seen
    unsubscribe()


def test_the_newest_messages_stay(events):
    messages = turns(20)
    assert SlidingWindowManager(4).apply(messages) == messages[-4:]
    assert SlidingWindowManager().apply(messages) == messages[-20:]
    assert [(e.name, dict(e.attributes)) for e in events] == [
        ("conversation.trimmed", {"dropped": 36, "kept": 4}),
        ("conversation.trimmed", {"dropped": 20, "kept": 20}),
    ]


def test_nothing_is_told_when_nothing_is_dropped(events):
    messages = [SYSTEM, *turns(2)]
    assert SlidingWindowManager(4).apply(messages) == messages
    assert SlidingWindowManager(4).apply([]) == []
    assert SlidingWindowManager(4).apply([SYSTEM]) == [SYSTEM]
    assert events == []


def test_every_system_message_stays_in_place():
    """Not only the last, and not all in front."""
    other = Message.system("it is late")
    messages = [SYSTEM, *turns(3), other, *turns(2)]
    assert SlidingWindowManager(6).apply(messages) == [SYSTEM, *messages[5:]]
    assert SlidingWindowManager(2).apply(messages) == [SYSTEM, other, *messages[-2:]]
    assert SlidingWindowManager(2, preserve_system=False).apply(messages) == messages[-2:]
    assert SlidingWindowManager(5, preserve_system=False).apply(messages) == messages[-5:]


def test_a_parallel_batch_is_never_split():
    messages = [Message.user("go"), *batch("a", "b", "c"), Message.assistant("found")]
    messages += [Message.user("thanks"), Message.assistant("welcome")]
    assert SlidingWindowManager(7).apply(messages) == [*messages[1:]]
    for size in (3, 4, 5, 6):
        shown = SlidingWindowManager(size).apply(messages)
        assert shown == messages[-3:]
        assert validate(shown) == []


def test_a_group_that_is_too_large_stays_whole(events):
    messages = [Message.user("go"), *batch("a", "b", "c", "d")]
    assert SlidingWindowManager(2).apply(messages) == messages
    assert [(e.name, dict(e.attributes)) for e in events] == [
        ("conversation.oversized", {"messages": 6, "tokens": 0, "window_size": 2}),
    ]


def test_the_request_survives_a_long_tool_loop(events):
    """Older groups make room for it."""
    loop = [message for number in range(50) for message in batch(f"c{number}")]
    request = Message.user("count everything")
    messages = [SYSTEM, *turns(3), request, *loop]
    shown = SlidingWindowManager(7).apply(messages)
    assert shown == [SYSTEM, request, *loop[-6:]]
    assert SlidingWindowManager(2).apply(messages) == [SYSTEM, request, *loop[-2:]]
    assert [event.name for event in events] == [
        "conversation.trimmed",
        "conversation.oversized",
        "conversation.trimmed",
    ]


def test_a_window_of_tokens_counts_all_that_is_returned():
    manager = SlidingWindowManager(None, max_tokens=100)
    messages = [SYSTEM, *turns(50)]
    shown = manager.apply(messages)
    assert shown[0] is SYSTEM
    assert 60 < count_tokens(shown) <= 100
    assert shown[1:] == messages[-len(shown) + 1 :]
    assert count_tokens(messages[-len(shown) :]) + count_tokens([SYSTEM]) > 100


def test_a_counter_of_ones_own():
    counted = []

    def count(text):
        counted.append(text)
        return 10

    manager = SlidingWindowManager(None, max_tokens=50, token_counter=count)
    messages = turns(20)
    assert manager.apply(messages) == messages[-3:]
    assert len(counted) < 8
    # What is counted once stays known.
    assert manager.apply(messages) == messages[-3:]
    assert len(counted) < 8


def test_both_limits_hold():
    manager = SlidingWindowManager(4, max_tokens=10_000)
    messages = turns(20)
    assert manager.apply(messages) == messages[-4:]


def test_a_newest_message_beyond_the_budget_stays(events):
    manager = SlidingWindowManager(None, max_tokens=20)
    messages = [*turns(2), Message.user("word " * 200)]
    assert manager.apply(messages) == messages[-1:]
    assert [event.name for event in events] == ["conversation.oversized", "conversation.trimmed"]
    assert events[0].attributes["max_tokens"] == 20
    assert events[0].attributes["tokens"] > 200


def test_system_messages_beyond_the_budget_stay(events):
    manager = SlidingWindowManager(None, max_tokens=3)
    assert manager.apply([SYSTEM]) == [SYSTEM]
    assert [event.name for event in events] == ["conversation.oversized"]


def test_a_broken_conversation_is_mended_first():
    messages = [Message.user("go"), *batch("a", "b")[:2]]
    shown = SlidingWindowManager(10).apply(messages)
    assert shown[:3] == messages
    assert validate(shown) == []


@pytest.mark.parametrize(
    "arguments",
    [
        {"window_size": 0},
        {"window_size": -1},
        {"window_size": True},
        {"window_size": 2.5},
        {"window_size": None},
        {"max_tokens": 0},
        {"max_tokens": "100"},
        {"max_tokens": 10, "token_counter": 3},
        {"token_counter": 3},
    ],
)
def test_arguments_are_checked(arguments):
    with pytest.raises(InvalidArgumentError):
        SlidingWindowManager(**arguments)


def test_the_repr_shows_the_settings():
    expected = "SlidingWindowManager(window_size=5, preserve_system=True, max_tokens=None)"
    assert repr(SlidingWindowManager(5)) == expected


def test_a_message_edited_in_place_is_counted_again():
    class Editable:
        def __init__(self, role, content):
            self.role, self.content = role, content
            self.tool_calls, self.tool_call_id, self.name = (), None, None

    manager = SlidingWindowManager(None, max_tokens=60)
    messages = [Editable("user", "a"), Editable("user", "b")]
    assert manager.apply(messages) == messages
    messages[0].content = "word " * 100
    assert manager.apply(messages) == messages[1:]
