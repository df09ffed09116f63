from locus_memory.conversation.memo import MessageMemo
from locus_memory.messages import Message


def test_a_value_is_computed_once_a_message():
    computed = []
    memo = MessageMemo(lambda message: computed.append(message) or message.content)
    messages = [Message.user("a"), Message.user("a")]
    for _ in range(3):
        assert memo.values(messages) == ["a", "a"]
        assert memo.value(messages[0]) == "a"
    assert len(computed) == 2


def test_it_is_bounded():
    computed = []
    memo = MessageMemo(lambda message: computed.append(message) or 1, capacity=3)
    messages = [Message.user(str(number)) for number in range(5)]
    for message in messages:
        memo.value(message)
    assert len(memo._entries) == 3
    memo.value(messages[4])
    assert len(computed) == 5
    memo.value(messages[0])
    assert len(computed) == 6


def test_a_conversation_beyond_the_bound_does_not_push_itself_out():
    computed = []
    memo = MessageMemo(lambda message: computed.append(message) or 1, capacity=3)
    messages = [Message.user(str(number)) for number in range(5)]
    for _ in range(3):
        memo.values(messages)
    assert len(computed) == 5
