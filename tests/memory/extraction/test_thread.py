"""What the user asks in a conversation, read from its end."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from locus_memory.memory.extraction.thread import asked, latest_user_text
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
    own = strip(shown)
    is_first = sum(each.role == "user" for each in own) <= 1
    assert asked(shown) == (latest_user_text(own), is_first)


@pytest.mark.parametrize("count", [0, 1, 2])
def test_it_is_the_first_message_unless_there_is_another_one(count):
    conversation = [Message.user("Hi")] * count
    assert asked(conversation) == ("Hi" if count else None, count <= 1)
