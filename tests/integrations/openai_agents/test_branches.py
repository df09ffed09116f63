"""Branches of a session: copies of its first turns."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from agents import Usage

from locus_memory.errors import BackendUnavailableError, InvalidArgumentError
from locus_memory.events import collect

TURNS = [
    {"role": "user", "content": "one"},
    {"role": "assistant", "content": "1"},
    {"role": "user", "content": [{"type": "input_text", "text": "two" * 60}]},
    {"role": "assistant", "content": "2"},
]


async def test_a_branch_begins_before_its_turn(sessions):
    session = sessions()
    await session.add_items(TURNS)
    name = await session.create_branch_from_turn(2, "other")
    assert (name, session.branch) == ("other", "other")
    assert await session.get_items() == TURNS[:2]
    await session.add_items([{"role": "user", "content": "three"}])
    assert await sessions().get_items() == TURNS
    assert len(await sessions(branch="other").get_items()) == 3
    listed = await session.list_branches()
    assert [
        (each["branch_id"], each["message_count"], each["user_turns"], each["is_current"])
        for each in listed
    ] == [("main", 4, 2, False), ("other", 3, 2, True)]
    await session.switch_to_branch("main")
    assert await session.get_items() == TURNS


async def test_a_branch_is_deleted_alone(sessions):
    session = sessions()
    await session.add_items(TURNS)
    name = await session.create_branch_from_turn(1)
    assert name.startswith("branch-")
    with pytest.raises(InvalidArgumentError, match="current branch"):
        await session.delete_branch(name)
    await session.delete_branch(name, force=True)
    assert session.branch == "main"
    assert await session.get_items() == TURNS
    for wrong in (name, "main"):
        with pytest.raises(InvalidArgumentError, match="branch"):
            await session.delete_branch(wrong)


async def test_what_does_not_exist(sessions):
    session = sessions()
    await session.add_items(TURNS)
    for wrong in (0, 3, True, "1"):
        with pytest.raises(InvalidArgumentError, match="turn_number"):
            await session.create_branch_from_turn(wrong)
    with pytest.raises(InvalidArgumentError, match="does not exist"):
        await session.switch_to_branch("other")
    await session.create_branch_from_turn(2, "other")
    await session.switch_to_branch("main")
    for taken in ("other", "main"):
        with pytest.raises(InvalidArgumentError, match="already been used"):
            await session.create_branch_from_turn(1, taken)
    assert session.branch == "main"


async def test_turns_are_the_messages_of_the_user(sessions):
    session = sessions()
    await session.add_items(TURNS)
    first, second = await session.get_conversation_turns()
    assert (first["turn"], first["content"], first["can_branch"]) == (1, "one", True)
    assert second["full_content"] == TURNS[2]["content"]
    assert len(second["content"]) == 103
    assert await session.get_conversation_turns("other") == []


@pytest.mark.slow
async def test_a_long_branch_is_whole(sessions):
    session = sessions()
    await session.add_items([{"role": "assistant", "content": f"{n}"} for n in range(1100)])
    await session.add_items(TURNS)
    await session.create_branch_from_turn(1, "other")
    assert [each["content"] for each in await session.get_items()] == [f"{n}" for n in range(1100)]
    await session.clear_session()
    assert await session.get_items() == []


def run(tokens):
    usage = Usage(requests=1, input_tokens=tokens, output_tokens=2, total_tokens=tokens + 2)
    return SimpleNamespace(context_wrapper=SimpleNamespace(usage=usage))


async def test_one_call_deletes_all_branches(sessions):
    session, other = sessions(), sessions()
    await session.add_items(TURNS)
    await session.store_run_usage(run(5))
    for name in ("one", "*"):
        await session.create_branch_from_turn(2, name)
        await session.add_items([{"role": "user", "content": "a secret"}])
        await session.store_run_usage(run(5))
        await session.switch_to_branch("main")
    await other.switch_to_branch("one")
    await sessions("bob").add_items(TURNS)
    await session.clear_session()
    assert session.branch == "main"
    for name in ("main", "one", "*"):
        assert await session.get_items(branch_id=name) == []
        assert await sessions(branch=name).get_items() == []
    assert await session.get_session_usage() is None
    assert [each["branch_id"] for each in await session.list_branches()] == ["main"]
    # Who was in a branch goes on in `main`, and no name comes back.
    await other.add_items(TURNS[:1])
    assert (other.branch, await session.get_items()) == ("main", TURNS[:1])
    with pytest.raises(InvalidArgumentError, match="already been used"):
        await session.create_branch_from_turn(1, "one")
    assert await sessions("bob").get_items() == TURNS


@pytest.mark.parametrize("call", ["get_items", "pop_item", "list_branches", "get_tool_usage"])
async def test_of_a_deleted_branch_the_next_call_is_in_main(sessions, call):
    session, other = sessions(), sessions()
    await session.add_items(TURNS)
    await other.create_branch_from_turn(2, "other")
    await session.delete_branch("other")
    expected = {"get_items": TURNS, "pop_item": TURNS[-1], "get_tool_usage": []}
    answer = await getattr(other, call)()
    assert call not in expected or answer == expected[call]
    assert other.branch == "main"


async def test_who_begins_in_a_branch_may_be_its_first_writer(sessions):
    session = sessions(branch="draft")
    assert await session.get_items() == []
    await session.add_items(TURNS[:1])
    assert (session.branch, await sessions(branch="draft").get_items()) == ("draft", TURNS[:1])


@pytest.mark.parametrize("name", ["", " ", "\u3000", "\n"])
async def test_a_blank_name_is_refused(sessions, name):
    session = sessions()
    await session.add_items(TURNS)
    with pytest.raises(InvalidArgumentError, match="cannot be empty"):
        await session.create_branch_from_turn(1, name)
    with pytest.raises(InvalidArgumentError, match="cannot be empty"):
        await session.delete_branch(name)


@pytest.mark.parametrize(
    ("text", "term", "found"),
    [
        ("Tell me about cats", "CATS", True),
        ("大阪の天気", "大阪", True),
        ("50% a_b", "% a_", True),
        ("50 or a.b", "% a_", False),
        ("C:\\notes", "\\n", True),
        ([{"type": "input_text", "text": "قطة"}, {"type": "input_image"}], "قطة", True),
        ([{"type": "input_text", "text": "cat"}], "input_text", False),
        ([{"type": "input_text", "text": None}, "cat", None], "cat", False),
        (None, "None", False),
    ],
)
async def test_turns_are_found_by_their_text(sessions, text, term, found):
    session = sessions()
    await session.add_items([*TURNS[:2], {"role": "user", "content": text}])
    turns = await session.find_turns_by_content(term)
    assert [each["turn"] for each in turns] == ([2] if found else [])
    if found:
        assert turns[0]["full_content"] == text
        await session.create_branch_from_content(term, "other")
        assert await session.get_items() == TURNS[:2]
    else:
        with pytest.raises(InvalidArgumentError, match="No user turns found"):
            await session.create_branch_from_content(term)


async def test_usage_is_kept_by_turns(sessions):
    session = sessions()
    await session.store_run_usage(run(1))
    assert await session.get_session_usage() is None
    for number in (1, 2):
        await session.add_items([{"role": "user", "content": "more"}])
        await session.store_run_usage(run(number * 10))
    await session.store_run_usage(run(30))
    sums = {"requests": 2, "input_tokens": 40, "output_tokens": 4, "total_tokens": 44}
    assert await session.get_session_usage("main") == {**sums, "total_turns": 2}
    [first, second] = await session.get_turn_usage()
    assert (first["user_turn_number"], second["input_tokens"]) == (1, 30)
    assert (await session.get_turn_usage(2))["output_tokens_details"] == {"reasoning_tokens": 0}
    assert await session.get_turn_usage(3) == {}
    await session.create_branch_from_turn(2, "other")
    await session.add_items([{"role": "user", "content": "again"}])
    await session.store_run_usage(run(5))
    assert [each["input_tokens"] for each in await session.get_turn_usage()] == [5]
    assert (await session.get_session_usage())["total_turns"] == 3
    # A turn that is gone has no usage, and the next of its number has its own.
    await session.pop_item()
    await session.add_items([{"role": "user", "content": "again"}])
    assert await session.get_turn_usage() == []


async def test_a_usage_that_is_not_stored_fails_no_run(sessions, monkeypatch):
    async def down(*_, **__):
        raise BackendUnavailableError("down")

    session = sessions()
    await session.add_items(TURNS)
    monkeypatch.setattr(session.store, "put", down)
    with collect() as events:
        await session.store_run_usage(run(1))
    assert [event.name for event in events] == ["integrations.usage_not_stored"]


async def test_tools_are_counted_by_turns(sessions):
    session = sessions()
    call = {"type": "function_call", "name": "lookup", "call_id": "1", "arguments": "{}"}
    await session.add_items([call, TURNS[0], call, call, {"type": "tool_search_output"}])
    assert await session.get_tool_usage() == [
        ("lookup", 1, 0),
        ("lookup", 2, 1),
        ("tool_search", 1, 1),
    ]
    turns = await session.get_conversation_by_turns()
    assert turns[0] == [{"type": "function_call", "tool_name": "lookup"}]
    assert turns[1][0] == {"type": "user", "tool_name": None}
