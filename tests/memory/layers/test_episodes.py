"""The episode, transcript and log layers."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from locus_memory.backends.inmemory.store import InMemoryStore
from locus_memory.errors import InvalidArgumentError
from locus_memory.memory.layers.episodes import Episode, EpisodeBook, episode_put
from locus_memory.memory.layers.log import LogEntry, log_put, read_log
from locus_memory.memory.layers.transcript import transcript_puts
from locus_memory.memory.scope import Scope
from locus_memory.messages import Message, Role

SCOPE = Scope(("app", "users", "ada"))
EPISODE = Episode(
    session_id="thread-1",
    started_at="2026-03-01T10:00:00.000000+00:00",
    ended_at="2026-03-01T10:20:00.000000+00:00",
    summary="Ada planned the move to Graz.",
    topics=("move", "Graz"),
    decisions=("The move is in May.",),
    turns=(3, 12),
)
texts = st.lists(st.text(max_size=400), max_size=20)


@pytest.mark.slow
@given(summary=st.text(max_size=900), entries=texts, salience=st.floats(-2, 3))
def test_an_episode_is_bounded_and_survives_its_json(
    summary: str, entries: list[str], salience: float
) -> None:
    """Any text of a model becomes short lines; without a summary there is no episode."""
    try:
        episode = replace(
            EPISODE, summary=summary, topics=tuple(entries), entities=entries, salience=salience
        )
    except InvalidArgumentError:
        assert not summary.strip() or not summary.isprintable()
        return
    assert Episode.from_value(episode.to_value()) == episode
    assert len(episode.summary) <= 600
    assert len(episode.topics) <= 8
    assert "\n" not in "".join((episode.summary, *episode.topics))
    assert 0 <= episode.salience <= 1


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


async def test_a_transcript_has_what_people_and_the_assistant_said() -> None:
    """Tools' outputs and empty messages are not recorded, and recording twice changes nothing."""
    said = [
        Message.user("Where is the office?"),
        Message(role=Role.TOOL, content="secret output", tool_call_id="c"),
        Message.assistant("In Graz."),
        Message.assistant(""),
    ]
    async with InMemoryStore() as store:
        puts = transcript_puts(SCOPE, "thread-1", said, 5, EPISODE.started_at)
        await store.put_batch(puts)
        await store.put_batch(puts)
        items = await store.scan(SCOPE.transcript("thread-1"), 10)
        assert [item.value["text"] for item in items] == ["Where is the office?", "In Graz."]
        assert items[0].metadata["speaker"] == "user"


async def test_the_log_is_in_the_order_of_time() -> None:
    """Entries are read as they were written."""
    entries = [
        LogEntry(kind="distill", at=f"2026-03-0{day}T10:00:00.000000+00:00", duration_ms=1.5)
        for day in (2, 1)
    ]
    failed = LogEntry(kind="gate", at="2026-03-03", duration_ms=2, ok=False, error="TimeoutError")
    async with InMemoryStore() as store:
        await store.put_batch([log_put(SCOPE, each) for each in (*entries, failed)])
        assert [each async for each in read_log(store, SCOPE)] == [*entries[::-1], failed]


@pytest.mark.parametrize("value", [None, 7, {}, {"summary": "x"}, {"turns": [1]}])
def test_another_value_is_no_episode(value: object) -> None:
    """A stored value of another program is refused by one kind of error."""
    with pytest.raises(InvalidArgumentError):
        Episode.from_value(value)  # type: ignore[arg-type] # the subject of the test
