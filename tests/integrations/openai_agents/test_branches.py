"""Branches of a session: copies of its first turns."""

from __future__ import annotations

import pytest

from locus_memory.errors import InvalidArgumentError

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
    with pytest.raises(InvalidArgumentError, match="no branch"):
        await session.switch_to_branch("other")
    await session.create_branch_from_turn(2, "other")
    await session.switch_to_branch("main")
    for taken in ("other", "main"):
        with pytest.raises(InvalidArgumentError, match="exists already"):
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
