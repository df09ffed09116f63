from __future__ import annotations

import re
import sqlite3
from contextlib import closing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from locus_memory import open_backend
from locus_memory.web.pages.threads.drawing import draw
from locus_memory.web.pages.threads.messages import view_message, view_messages
from locus_memory.web.pages.threads.state import WINDOW, window
from locus_memory.web.questions.branches import Branch, Branches

EVIL = "<script>alert('x')</script>\"'&"


def talk(*texts, **rest):
    roles = ("user", "assistant")
    messages = [{"role": roles[n % 2], "content": text} for n, text in enumerate(texts)]
    return {"messages": messages, **rest}


async def filled(checkpointer, thread="trip"):
    ids = [
        await checkpointer.save(talk("Hello."), thread, metadata={"step": 1}),
        await checkpointer.save(talk("Hello.", "Good day."), thread),
        await checkpointer.save(talk("Hello.", "Good night.", mood="calm"), thread),
    ]
    return [each if isinstance(each, str) else str(each) for each in ids]


async def test_an_empty_list_says_what_to_do(browser):
    assert "No threads yet" in await browser.page("/threads")
    assert "No thread begins with" in await browser.page("/threads", prefix="x")


async def test_the_list_is_searched_and_paged(browser, backend):
    for n in range(5):
        await backend.checkpointer.save(talk("hi"), f"t{n}")
    await backend.checkpointer.save(talk("hi"), "other")
    text = await browser.page("/threads", prefix="t", limit=2)
    seen = re.findall(r'<tr data-row><td class="wide"><a href="[^"]*thread=(\w+)"', text)
    while more := re.search(r'<a class="button" href="([^"]+)" hx-get', text):
        text = await browser.page(more[1].replace("&amp;", "&"))
        seen += re.findall(r'<tr data-row><td class="wide"><a href="[^"]*thread=(\w+)"', text)
    assert seen == [f"t{n}" for n in range(5)]
    assert (await browser.get("/threads", cursor="x")).status_code == 400


async def test_a_timeline_shows_each_checkpoint_and_pages(browser, backend):
    ids = await filled(backend.checkpointer)
    text = await browser.page("/threads/timeline", thread="trip")
    assert [text.index(f'title="{each}"') for each in ids] == sorted(
        (text.index(f'title="{each}"') for each in ids), reverse=True
    )
    assert ('class="full"' in text, "step" in text) == (True, True)
    text = await browser.page("/threads/timeline", thread="trip", limit=2, deep="true")
    assert "as full JSON" in text
    more = re.search(r'<a class="button" href="([^"]+)" hx-get', text)
    assert ids[0] in await browser.page(more[1].replace("&amp;", "&"))
    missing = await browser.get("/threads/timeline", thread="tripp")
    assert (missing.status_code, "did you mean &#39;trip&#39;?" in missing.text) == (404, True)
    assert (await browser.get("/threads/timeline")).status_code == 422


async def test_a_conversation_is_shown_at_any_checkpoint_with_calls_folded(browser, backend):
    call = {"id": "c1", "name": "book_table", "arguments": {"day": "Friday"}}
    state = talk("Book a table.")
    state["messages"] += [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "content": "It is booked.", "name": "book_table", "tool_call_id": "c1"},
    ]
    first = await backend.checkpointer.save(state, "trip")
    await backend.checkpointer.save(talk("Something else."), "trip")
    text = await browser.page("/threads/at", thread="trip", checkpoint=first)
    assert "Something else." not in text
    folded = re.findall(r"<details class=\"fold[^>]*>(.*?)</details>", text, re.DOTALL)
    assert any("book_table" in each and "Friday" in each for each in folded)
    assert any("It is booked." in each for each in folded)
    assert "Something else." in await browser.page("/threads/at", thread="trip")
    assert 'id="m2"' in await browser.page("/threads/at", thread="trip", checkpoint="1", place=2)


async def test_a_long_conversation_is_shown_in_pages(plain, browsing):
    await plain.checkpointer.save(talk(*(f"text {n}." for n in range(1, 451))), "trip")
    async with browsing(plain) as browser:
        text = await browser.page("/threads/at", thread="trip")
        assert ("text 450." in text, "text 401." in text, "text 400." in text) == (1, 1, 0)
        text = await browser.page("/threads/at", thread="trip", place=250)
        assert ("text 250." in text, "text 200." in text) == (True, False)
        assert 'wanted" id="m250"' in text


@pytest.mark.slow
@given(st.integers(0, 3_000), st.none() | st.integers(1, 4_000))
def test_each_message_is_on_the_page_of_its_place(total, wanted):
    first, last = window(total, wanted)
    assert 1 <= first <= last + 1
    assert last - first < WINDOW
    assert total == 0 or first <= min(wanted or total, total) <= last


async def test_two_checkpoints_are_compared_side_by_side(browser, backend):
    ids = await filled(backend.checkpointer)
    text = await browser.page("/threads/diff", thread="trip", checkpoint=ids[1])
    assert "Good <del>day</del>." in text
    assert "Good <ins>night</ins>." in text
    assert "1 message in common" in text
    assert "mood" in text
    same = await browser.page(
        "/threads/diff", thread="trip", checkpoint=ids[0], other_checkpoint=ids[0]
    )
    assert "No difference" in same
    assert (await browser.get("/threads/diff", thread="trip", checkpoint="x")).status_code == 404


@pytest.mark.slow
async def test_a_fork_is_made_and_drawn_on_both_sides(browser, backend):
    ids = await filled(backend.checkpointer)
    assert "No forks" in await browser.page("/threads/branches", thread="trip")
    answer = await browser.post(
        "/threads/fork", thread="trip", checkpoint=ids[1], new_thread="trip-b"
    )
    text = await browser.follow(answer)
    assert "trip-b begins at this checkpoint of trip." in text
    assert "begins at this checkpoint" not in await browser.page("/threads")
    assert (await backend.checkpointer.load("trip-b"))["messages"][-1]["content"] == "Good day."
    for thread in ("trip", "trip-b"):
        text = await browser.page("/threads/branches", thread=thread)
        assert text.count("<li>") - text.count('<li><a href="/"') >= 2
        assert ">trip-b</span>" in text
        assert ">trip</span>" in text
    again = await browser.post("/threads/fork", thread="trip", new_thread="trip-b")
    assert again.status_code == 409


async def test_pruning_is_previewed_and_then_done(browser, backend):
    ids = await filled(backend.checkpointer)
    assert "would be deleted" not in await browser.page("/threads/prune", thread="trip")
    text = await browser.page("/threads/prune", thread="trip", keep_last=1)
    assert "2 of 3 checkpoints would be deleted" in text
    assert all(each in text for each in ids[:2])
    assert ids[2] not in text
    assert len(await backend.checkpointer.list_checkpoints("trip", 9)) == 3
    answer = await browser.post("/threads/prune", thread="trip", keep_last=1)
    assert "Deleted: 2 of 3 checkpoints." in await browser.follow(answer)
    assert await backend.checkpointer.list_checkpoints("trip", 9) == [ids[2]]
    early = await browser.page("/threads/prune", thread="trip", older_than="2000-01-01T00:00")
    assert "0 of 1" in early
    assert (await browser.post("/threads/prune", thread="trip")).status_code == 400


async def test_a_deletion_is_previewed_and_then_done(browser, backend):
    ids = await filled(backend.checkpointer)
    text = await browser.page("/threads/delete", thread="trip", checkpoint=ids[0])
    assert "Delete one checkpoint?" in text
    answer = await browser.post("/threads/delete", thread="trip", checkpoint=ids[0])
    assert "is deleted" in await browser.follow(answer)
    assert "2 checkpoints would go" in await browser.page("/threads/delete", thread="trip")
    answer = await browser.post("/threads/delete", thread="trip")
    assert "trip is deleted." in await browser.follow(answer)
    assert not await backend.checkpointer.exists("trip")


async def test_the_last_checkpoint_of_a_thread_leads_back_to_the_list(plain, browsing):
    only = await plain.checkpointer.save(talk("hi"), "trip")
    async with browsing(plain) as browser:
        answer = await browser.post("/threads/delete", thread="trip", checkpoint=only)
        assert answer.headers["location"] == "/threads"


async def test_a_stored_script_is_escaped_on_each_page_of_threads(browser, backend):
    thread = f"t {EVIL}"
    call = {"id": EVIL, "name": EVIL, "arguments": {EVIL: EVIL}}
    state = {
        "messages": [
            {"role": "user", "content": EVIL, "name": EVIL, "metadata": {"session_date": EVIL}},
            {"role": EVIL, "content": [{"type": "text", "text": EVIL}], "tool_calls": [call, EVIL]},
            {"role": "tool", "content": EVIL, "name": EVIL},
            EVIL,
        ],
        EVIL: {"deep": EVIL},
    }
    first = await backend.checkpointer.save(talk("x"), thread, metadata={EVIL: EVIL})
    await backend.checkpointer.save(state, thread, metadata={EVIL: EVIL})
    await browser.post("/threads/fork", thread=thread, new_thread=f"u {EVIL}")
    for path in (
        "/threads",
        "/threads/timeline",
        "/threads/branches",
        "/threads/at",
        "/threads/diff",
        "/threads/prune",
        "/threads/delete",
    ):
        given = {} if path == "/threads" else {"thread": thread}
        if path == "/threads/diff":
            given["checkpoint"] = first
        for more in ({}, {"keep_last": 1}):
            text = await browser.page(path, **given, **more)
            assert "<script>alert" not in text
            assert "&lt;script&gt;alert" in text
            assert not re.search(r'="[^"<>]*alert\(\'x\'\)</script>"\'', text)
    refused = await browser.get("/threads/at", thread=EVIL)
    assert "<script>alert" not in refused.text


def test_a_message_of_any_form_can_be_shown():
    assert view_message(1, "text").parts == "text"
    assert view_message(1, {"type": "human", "content": "x"}).role == "user"
    openai = {"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": "{}"}}]}
    assert view_message(1, openai).calls[0].name == "f"
    assert view_message(1, {"role": 7, "tool_calls": 3}).speaker == "7"
    sessions = [{"metadata": {"session": n}} for n in (1, 1, 2)]
    assert [each.session for each in view_messages(sessions)] == ["session 1", "", "session 2"]


def branch(name, place, checkpoints):
    return Branch(thread_id=name, checkpoint_id="c", place=place, checkpoints=checkpoints)


@pytest.mark.slow
@given(
    st.integers(1, 500),
    st.none() | st.tuples(st.integers(0, 300), st.integers(0, 300)),
    st.lists(st.tuples(st.integers(0, 500), st.integers(1, 500)), max_size=5),
)
def test_each_thread_of_a_family_has_a_line_inside_the_picture(count, source, forks):
    branches = Branches(
        thread_id="this",
        checkpoints=count,
        source=None if source is None else branch("source", *source),
        begins_at=0 if source is None else min(count, 3),
        forks=[branch(f"f{n}", *each) for n, each in enumerate(forks)],
        complete=True,
    )
    picture = draw(branches)
    assert len(picture.lanes) == 1 + (source is not None) + len(forks)
    assert [lane.thread_id for lane in picture.lanes if lane.is_this] == ["this"]
    for lane in picture.lanes:
        assert 0 <= lane.x <= picture.width
        assert 0 < lane.y < picture.height


async def test_the_list_tells_what_a_thread_is_about(browser, backend):
    await backend.checkpointer.save(talk("Where is <i>Riga</i>?", "In Latvia."), "a")
    await backend.checkpointer.save({"messages": [], "n": 1}, "empty")
    await backend.checkpointer.save({"n": [1]}, "bare", metadata={"user_id": "bo"})
    text = await browser.page("/threads")
    assert "Where is &lt;i&gt;Riga&lt;/i&gt;?" in text
    assert "<i>Riga" not in text
    for name in ("a", "empty", "bare", "bo"):
        assert f">{name}</span>" in text


async def test_the_checkpoints_stand_beside_the_conversation(browser, backend):
    for n in range(35):
        await backend.checkpointer.save(talk(f"hi {n}"), "t", f"c{n:02}", metadata={"kind": "user"})
    text = await browser.page("/threads/at", thread="t")
    assert text.count('title="c') == 30
    assert 'title="c34" aria-current="true"' in text
    assert "checkpoint=c33&amp;other_checkpoint=c34" in text
    old = await browser.page("/threads/at", thread="t", checkpoint="c02")
    assert re.findall(r'title="(c\d\d)"', old) == ["c01", "c00"]


async def test_the_page_of_a_damaged_checkpoint_leads_to_the_others(browsing, tmp_path):
    where = f"sqlite:{tmp_path}/damaged.db"
    async with open_backend(where, state_type=None) as backend:
        first, _, newest = await filled(backend.checkpointer, "a/b")
    with closing(sqlite3.connect(tmp_path / "damaged.db", isolation_level=None)) as connection:
        damage = "UPDATE checkpoints SET payload = x'00' WHERE rowid = (SELECT max(rowid) FROM "
        connection.execute(f"{damage} checkpoints)")
    async with open_backend(where, state_type=None) as backend, browsing(backend) as browser:
        shown = await browser.get("/threads/at", thread="a/b")
        assert shown.status_code == 500
        (leads,) = re.findall(r'href="(/threads/timeline[^"]*)"', shown.text)
        assert newest in await browser.page(leads)
        assert "Hello." in await browser.page("/threads/at", thread="a/b", checkpoint=first)
