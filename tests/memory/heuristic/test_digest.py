from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from locus_memory.memory.heuristic.digest import Digest, digest
from locus_memory.memory.inject import inject
from locus_memory.messages import Message


def session(*texts):
    """Return messages, the user's and the assistant's in turn."""
    return [
        Message.assistant(text) if place % 2 else Message.user(text)
        for place, text in enumerate(texts)
    ]


CODING = session(
    "Hi! Our checkout service in Lisbon times out when it calls Postgres. How do I find the slow"
    " queries in Postgres?",
    "Enable pg_stat_statements and sort by mean time. Shall I write the migration for you?",
    "Yes please. The orders table has forty million rows, and the slow query scans the orders"
    " table.",
    "Then an index on customer_id helps. Do you want it built concurrently?",
    "We decided to build the index concurrently on the replica. I need to ask Marta for access to"
    " the replica first. Don't forget to update the runbook.",
    "Noted.",
    "Thanks! Never run migrations on Fridays.",
)
TRIP = session(
    "I need to plan a trip for my choir. We are twenty-six people, and the budget is 9,000 pounds.",
    "Where would you like to sing?",
    "Let's go with Ghent, the churches in Ghent are flat. Margaret uses a wheelchair.",
    "Ghent it is. Should I book the hotel near the station?",
    "Yes, please do. I'll ask the dean about the church in Ghent next week.",
    "Fine.",
    "Can you remind me to call Mr De Smet on Monday?",
)


def test_a_session_about_code():
    found = digest(CODING)
    assert found.summary.count("The user") >= 2
    assert "The user has decided" not in found.summary
    assert found.decisions[0] == "The user decided to build the index concurrently on the replica."
    assert found.action_items == (
        "The user needs to ask Marta for access to the replica first.",
        "Don't forget to update the runbook.",
    )
    assert found.entities[:3] == ("Lisbon", "Postgres", "Marta")
    assert {"orders table", "replica"} <= set(found.topics)
    assert 0.5 < found.salience <= 1


def test_a_session_about_a_trip():
    found = digest(TRIP)
    assert "The user needs to plan a trip for the user's choir." in found.summary
    assert found.decisions == (
        "Let's go with Ghent, the churches in Ghent are flat.",
        "The user agreed: book the hotel near the station.",
    )
    assert found.action_items == (
        "The user needs to plan a trip for the user's choir.",
        "The user will ask the dean about the church in Ghent next week.",
        "Remind the user to call Mr De Smet on Monday.",
    )
    assert set(found.entities) == {"Ghent", "Mr De Smet"}


@pytest.mark.parametrize(
    ("text", "summary"),
    [
        (
            "How do I rotate nginx logs every week with logrotate?",
            "The user asked how to rotate nginx logs every week with logrotate.",
        ),
        (
            "What is the largest lake in northern Finland?",
            "The user asked what the largest lake in northern Finland is.",
        ),
        (
            "Could you please compare SQLite with Postgres for a desktop program?",
            "The user asked the assistant to compare SQLite with Postgres for a desktop program.",
        ),
        (
            "Write a Python script that renames photos by date.",
            "The user asked the assistant to write a Python script that renames photos by date.",
        ),
        (
            "I bought a wooden boat in Falmouth yesterday.",
            "The user bought a wooden boat in Falmouth yesterday.",
        ),
        (
            "The surveyor has found rot in the transom of the boat.",
            "The user said that the surveyor has found rot in the transom of the boat.",
        ),
        (
            "Should we migrate the billing service to Kubernetes?",
            "The user asked whether to migrate the billing service to Kubernetes.",
        ),
        (
            "We believe that our schools in Graz need more teachers.",
            "The user believes that their schools in Graz need more teachers.",
        ),
        (
            "I told you that my daughter Mia plays chess on Fridays.",
            "The user told the assistant that the user's daughter Mia plays chess on Fridays.",
        ),
    ],
)
def test_the_user_is_told_of_in_the_third_person(text, summary):
    assert digest(session("Hello!", "Hi, how can I help?", text)).summary == summary


@pytest.mark.parametrize(
    "texts",
    [
        [],
        [""],
        ["Hi!", "Hello! How are you?", "Fine, thanks. And you?"],
        ["Good morning", "Good morning!", "Nice weather today, isn't it?"],
        ["What is 17 times 23?", "391.", "Thanks a lot!", "You're welcome.", "Bye"],
        ["Tell me a joke", "Why did the chicken cross the road?", "lol, why?"],
        ["ok", "Anything else?", "no", "Bye.", "see you"],
    ],
)
def test_small_talk_has_no_digest(texts):
    assert digest(session(*texts)) is None


def test_only_the_user_counts():
    said = "I bought a wooden boat in Falmouth and we decided to sail to Brittany."
    assert digest([Message.assistant(said), Message.system(said)]) is None
    assert digest(inject([], f"<memory>\n{said}\n</memory>")) is None


def test_what_is_not_the_users_is_left_out():
    found = digest(
        session(
            "Please summarise this email: Dear Bob, we decided to fire Alice in Paris tomorrow.\n"
            "```\nI need to deploy Zanzibar\n```\n> We agreed on Timbuktu for the meeting.\n"
            "I painted the garden fence green with my neighbour Okafor on Saturday."
        )
    )
    assert found is None or not {"Alice", "Zanzibar", "Timbuktu"} & set(found.entities)
    code = digest(
        session("I rebuilt the garden fence with my neighbour Okafor.\n```\nZanzibar\n```")
    )
    assert code.summary == "The user rebuilt the garden fence with the user's neighbour Okafor."
    assert code.entities == ("Okafor",)


def test_no_secret_is_retold():
    found = digest(
        [
            *TRIP,
            Message.user("My password is Swordfish and I need to change the Swordfish password."),
            Message.assistant("What is your PIN?"),
            Message.user("We decided to take Marmalade for the safe in Toledo."),
        ]
    )
    for secret in ("Swordfish", "Marmalade", "Toledo"):
        assert secret not in repr(found)


def test_other_languages_are_kept_as_they_are():
    found = digest(session("我们决定下周一把数据库迁移到新的服务器，玛丽亚负责测试和部署工作。"))  # noqa: RUF001 - Chinese
    assert found.summary.startswith("The user said: 我们决定")


def test_it_is_a_value():
    found = digest(CODING)
    assert found == digest(list(CODING))
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.salience = 0


def check(found):
    assert isinstance(found, Digest)
    assert 0 < len(found.summary) <= 600
    assert 0 <= found.salience <= 1
    bounds = {"topics": 8, "entities": 12, "decisions": 10, "action_items": 10}
    for field, most in bounds.items():
        each = getattr(found, field)
        assert isinstance(each, tuple)
        assert len(each) <= most
        assert all(each)
        assert len({text.casefold() for text in each}) == len(each)


@pytest.mark.slow
def test_a_long_session_keeps_the_bounds():
    texts = [
        f"{('I need to', 'We decided to')[n % 2]} sail boat number {n} to harbour Name{n}, then on"
        f" to Town{n}. {'Also the rig. ' * 20}"
        for n in range(200)
    ]
    found = digest([Message.user(text) for text in texts])
    check(found)
    assert (len(found.decisions), len(found.action_items), len(found.entities)) == (10, 10, 12)


@pytest.mark.slow
@given(
    st.lists(
        st.one_of(
            st.text(max_size=300),
            st.sampled_from([each.content for each in (*CODING, *TRIP)]),
        ),
        max_size=6,
    )
)
@settings(deadline=None, max_examples=150)
def test_no_text_raises(texts):
    messages = [
        Message.model_construct(role="assistant" if place % 3 == 2 else "user", content=text)
        for place, text in enumerate(texts)
    ]
    found = digest(messages)
    if found is not None:
        check(found)


@pytest.mark.parametrize(
    "piece", ["A", "Ab ", "I need to x ", "we decided ", "a, ", "\ud800", "? "]
)
def test_a_huge_message_is_read_in_part(piece):
    huge = (piece * 200_000)[:200_000]
    read = [Message.model_construct(role="user", content=text) for text in (huge, huge[:4001])]
    assert digest(read[:1]) == digest(read[1:])
