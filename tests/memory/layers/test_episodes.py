"""The episode and transcript layers."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from locus_memory.backends.inmemory.store import InMemoryStore
from locus_memory.errors import InvalidArgumentError
from locus_memory.memory.layers.episodes import NOTE_KINDS, Episode, EpisodeBook, Note, episode_put
from locus_memory.memory.scope import Scope

SCOPE = Scope(("app", "users", "ada"))
EPISODE = Episode(
    session_id="thread-1",
    started_at="2026-03-01T10:00:00.000000+00:00",
    ended_at="2026-03-01T10:20:00.000000+00:00",
    notes=(Note("Ada planned the move to Graz."), Note("The move is in May.", "decision")),
    turns=(3, 12),
)
notes = st.lists(
    st.tuples(
        st.text(max_size=900),
        st.sampled_from(["event", "task", "DONE", ""]),
        st.sampled_from(["", "2026", "2026-05", "2026-05-12/2026-05-14", "next Tuesday"]),
        st.lists(st.text(max_size=5), max_size=60),
    ),
    max_size=60,
)


@pytest.mark.slow
@given(told=notes, salience=st.floats(-2, 3))
def test_notes_are_bounded_and_survive_their_json(told: list[Any], salience: float) -> None:
    """Any text of a model becomes a short line; without a note there is no episode."""
    kept = []
    for text, kind, about, ids in told:
        try:
            kept.append(Note(text, kind, about, message_ids=tuple(ids)))
        except InvalidArgumentError:
            assert not text.strip() or not text.isprintable()
    if not kept:
        return
    episode = replace(EPISODE, notes=tuple(kept), salience=salience)
    assert Episode.from_value(json.loads(json.dumps(episode.to_value()))) == episode
    assert 0 < len(episode.notes) <= 40
    for note in episode.notes:
        assert len(note.text) <= 600
        assert "\n" not in note.text
        assert note.kind in NOTE_KINDS
        assert note.about in ("", "2026-05", "2026-05-12/2026-05-14")
        assert len(note.message_ids) <= 50
    assert 0 <= episode.salience <= 1


def test_a_note_names_at_most_fifty_messages() -> None:
    ids = tuple(map(str, range(51)))
    for count in (0, 1, 2, 50, 51):
        assert Note("It rained.", message_ids=ids[:count]).message_ids == ids[: min(count, 50)]


def test_a_digest_of_an_earlier_version_is_read_as_notes() -> None:
    """Nothing of it is lost."""
    value = {
        "session_id": "t",
        "agent_id": None,
        "started_at": "2026-03-01T10:00:00.000000+00:00",
        "ended_at": "2026-03-01T10:20:00.000000+00:00",
        "summary": "Ada planned the move to Graz.",
        "topics": ["move"],
        "entities": ["Graz", "Bob"],
        "decisions": ["The move is in May."],
        "action_items": ["Call Bob."],
        "salience": 0.5,
        "turns": [3, 12],
    }
    episode = Episode.from_value(value)
    assert [(each.kind, each.text) for each in episode.notes] == [
        ("event", "Ada planned the move to Graz."),
        ("decision", "The move is in May."),
        ("task", "Call Bob."),
        ("event", "It was about move, Graz, Bob."),
    ]
    assert Episode.from_value(episode.to_value()) == episode


async def test_a_repeat_replaces_its_own_episode() -> None:
    """A repeated distillation, even of more turns, leaves one episode; the newest come first."""
    async with InMemoryStore() as store:
        more = replace(EPISODE, ended_at="2026-03-01T11:00:00.000000+00:00", turns=(3, 20))
        later = replace(EPISODE, started_at="2026-03-02T10:00:00.000000+00:00", turns=(21, 22))
        await store.put_batch([episode_put(SCOPE, each) for each in (EPISODE, more, later)])
        assert await EpisodeBook(store).newest(SCOPE) == [later, more]
        assert await EpisodeBook(store).newest(SCOPE, 1) == [later]
        found = await store.search(SCOPE.episodes, "Graz move", 5)
        assert len(found) == 2


@pytest.mark.parametrize("value", [None, 7, {}, {"summary": "x"}, {"turns": [1]}])
def test_another_value_is_no_episode(value: object) -> None:
    """A stored value of another program is refused by one kind of error."""
    with pytest.raises(InvalidArgumentError):
        Episode.from_value(value)  # type: ignore[arg-type] # the subject of the test
