"""Whether the words of a question stand in an item by chance."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from locus_memory.retrieval.chance import by_chance
from locus_memory.retrieval.ranking.fields import Fields
from locus_memory.retrieval.ranking.query import read_query
from locus_memory.store.item import StoreItem

NOW = datetime(2024, 1, 1, tzinfo=UTC)
FIELDS = Fields(text=("text",), title=("title",))


def passage(text, title=""):
    item = StoreItem(("n",), "k", {"text": text}, {"title": title}, NOW, NOW)
    return FIELDS.read(item)


@pytest.mark.parametrize(
    ("question", "text", "expected"),
    [
        ("Why is the sky blue?", "As an example, 'the sky is blue' has four words.", True),
        ("Why is the sky blue?", "Nothing of it.", True),
        ("Why is the summer sky blue?", "A blue summer sky is an example.", False),
        ("Why is the summer sky blue?", "A blue sky is an example.", True),
        ("What is 17 times 23?", "| 17 | 4.5 | 23 |", True),
        ("What is run_sync?", "`run_sync` blocks.", False),
        ("What is run_sync?", "Run the sync.", True),
        ("What is KeyRange?", "A KEYRANGE is a part of it.", False),
        ("What is FT.CREATE?", "`FT.CREATE` makes an index.", False),
        ("What is FT._LIST?", "`FT._LIST` lists them.", False),
        ("What is knn.384?", "`knn.384` is a field.", False),
        ("What is sha256?", "It is the sha256 of the file.", False),
        ("Is the sky blue? I use KeyRange.", "The sky is blue.", True),
    ],
)
def test_one_or_two_everyday_words_are_chance_and_names_are_not(question, text, expected):
    asked, item = read_query(question), passage(text)
    assert by_chance(asked, item, 0.3, 0.3) is expected
    assert not by_chance(asked, item, 0.38, 0.3)
    assert not by_chance(asked, item, 0.5, 0.6)


@pytest.mark.parametrize(
    ("near", "mean", "expected"),
    [
        (0.36, 0.3, True),
        (0.38, 0.3, False),
        (0.1, 0.3, True),
        (0.49, 0.6, True),
        (0.5, 0.6, False),
        (0.0, 0.0, True),
    ],
)
def test_an_item_that_is_near_or_stands_out_is_not_there_by_chance(near, mean, expected):
    question = read_query("Why is the sky blue?")
    assert by_chance(question, passage("The sky is blue."), near, mean) is expected


def test_a_title_counts_as_the_text_does():
    assert not by_chance(read_query("What is run_sync?"), passage("It blocks.", "run_sync"), 0, 0)
    three = passage("The sky is blue.", "Summer")
    assert not by_chance(read_query("Why is the summer sky blue?"), three, 0, 0)
