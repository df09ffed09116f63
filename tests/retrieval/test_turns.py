from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from locus_memory.errors import InvalidArgumentError, InvalidEmbeddingError
from locus_memory.retrieval.turns import Turn, index_turns, turn_puts
from locus_memory.testing import FakeEmbedder

PLACE = ("talks",)
NOON = datetime(2024, 3, 3, 12, tzinfo=UTC)


def turns(*texts, **options):
    return [Turn(text=text, speaker="Ana", **options) for text in texts]


def test_the_text_holds_the_turn_its_neighbours_and_the_day():
    puts = turn_puts(PLACE, turns("one", "two", "three", said_at=NOON))
    assert puts[1].text == "Ana: two\nAna: one\nAna: three\n3 March 2024"
    assert puts[1].value == {"text": "two"}


def test_neighbours_join_while_they_fit():
    puts = turn_puts(PLACE, turns("a b c", "d", "e f g h i j"), words=7)
    assert puts[1].text == "Ana: d\nAna: a b c"


def test_a_long_turn_stands_alone():
    assert turn_puts(PLACE, turns("x", "y " * 500, "z"))[1].text == "Ana: " + "y " * 500


def test_what_is_known_is_in_the_metadata():
    (put,) = turn_puts(
        PLACE,
        [Turn(text="hi", speaker="Bo", said_at=NOON, id="D1:1", metadata={"role": "user"})],
        session="s1",
        first=7,
    )
    assert put.metadata == {
        "role": "user",
        "speaker": "Bo",
        "date": "2024-03-03T12:00:00+00:00",
        "session": "s1",
        "turn": "D1:1",
        "position": 7,
    }


def test_a_picture_is_part_of_the_text():
    (put,) = turn_puts(PLACE, [Turn(text="", caption="a red boat")])
    assert put.value == {"text": "[a red boat]"}
    assert put.text == "[a red boat]"


@settings(deadline=None, max_examples=50)
@given(st.lists(st.datetimes(timezones=st.just(UTC)), min_size=2, max_size=5))
def test_keys_are_in_the_order_of_time(moments):
    keys = [
        put.key
        for number, moment in enumerate(sorted(moments))
        for put in turn_puts(PLACE, turns("a", "b", said_at=moment), session=f"{number:04}")
    ]
    assert keys == sorted(keys)
    assert len(set(keys)) == len(keys)


def test_one_moment_in_two_zones_is_one_key():
    east = NOON.astimezone(timezone(timedelta(hours=5)))
    first, second = (turn_puts(PLACE, turns("a", said_at=each)) for each in (NOON, east))
    assert first[0].key == second[0].key


async def test_vectors_are_of_speaker_and_text():
    embedder = FakeEmbedder()
    puts = await index_turns(PLACE, [*turns("one", "two"), Turn(text=" ", speaker="Bo")], embedder)
    assert [put.embedding for put in puts[:2]] == await embedder.embed(["Ana: one", "Ana: two"])
    assert puts[2].embedding is None
    assert embedder.calls[0] == 2


async def test_an_embedder_that_breaks_its_word_is_named():
    class Forgetful(FakeEmbedder):
        async def embed(self, texts, *, kind="document"):
            return (await super().embed(texts, kind=kind))[1:]

    with pytest.raises(InvalidEmbeddingError, match="fake-8"):
        await index_turns(PLACE, turns("one"), Forgetful(8))


@pytest.mark.parametrize("options", [{"first": -1}, {"words": -1}])
def test_numbers_that_make_no_sense_are_refused(options):
    with pytest.raises(InvalidArgumentError):
        turn_puts(PLACE, turns("a"), **options)
