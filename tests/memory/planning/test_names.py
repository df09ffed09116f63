"""The names in facts and messages."""

from hypothesis import given
from hypothesis import strategies as st

from locus_memory.memory.planning.names import Names

PLAIN = ["The", "the", "Who", "who", "I", "in", "is", "May", "May's", "may", "English", "X"]
OTHERS = ["Data", "Anna", "anna", "Anna's", "New", "York", "new", "york", "Jean-Luc", "AT&T"]
texts = st.lists(st.sampled_from([*PLAIN, *OTHERS, *".,:?"]), max_size=8).map(" ".join)


@given(texts, st.lists(texts, max_size=4))
def test_only_facts_with_a_word_of_the_message_are_looked_at_and_no_name_is_missed(message, facts):
    assert Names.of_message(message, facts).are_in(message) == Names.of((), facts).are_in(message)


def test_a_name_with_a_plain_word_is_in_the_message():
    facts = ["Ada saw The Lanterns in Graz.", "The user likes tea."]
    assert Names.of_message("Are the lanterns good?", facts).are_in("Are the lanterns good?")


def test_a_plain_word_alone_names_nobody():
    facts = ["The user likes tea.", "May The Who play in May."]
    assert Names.of_message("The tea is cold, who made it in May?", facts) == Names()
