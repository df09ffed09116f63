"""What the user asks in a conversation, read from its end."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from locus_memory.memory.extraction.thread import asked, query_of
from locus_memory.memory.inject import inject, render_block, strip
from locus_memory.memory.models import Memory
from locus_memory.messages import Message

BLOCK = render_block([Memory("user", "city", "Lives in Oslo.")])

said = st.sampled_from(["", " ", "Hi", "Where do I live?", "<memory>", f"{BLOCK}\n\nAnd you?"])
messages = st.lists(
    st.one_of(said.map(Message.user), said.map(Message.assistant), said.map(Message.system)),
    max_size=6,
)


@pytest.mark.slow
@given(messages, st.sampled_from([None, BLOCK]), st.sampled_from(["system", "user"]))
def test_it_is_the_last_text_of_the_user_without_blocks(conversation, block, placement):
    shown = inject(conversation, block, placement)
    own = [each.content.strip() for each in strip(shown) if each.role == "user"]
    assert query_of(asked(shown)) == next(filter(None, reversed(own)), None)


def test_the_message_that_it_answers_is_before_it():
    told = [Message.user("Hi"), Message.assistant("Who?"), Message.assistant("")]
    last = [("user", "I am Ada."), ("user", "From Graz.")]
    asking = [*told, *(Message.user(text) for _, text in last)]
    assert asked(asking) == [("assistant", "Who?"), *last]
    answered = [*asking, Message.assistant("Noted.")]
    assert asked(answered) == [("assistant", "Who?"), *last, ("assistant", "Noted.")]
    assert query_of(asked(answered)) == "From Graz."
    assert (asked([]), query_of([])) == ([], None)
