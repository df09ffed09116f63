from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from locus_memory.conversation.tokens import expected_tokens
from locus_memory.errors import ConfigurationError
from locus_memory.evaluation.dataset import Session, load_sample
from locus_memory.evaluation.questions.asking import Counted
from locus_memory.evaluation.questions.memories import MEMORIES, message_of, moment_of
from locus_memory.retrieval.turns import Turn
from locus_memory.testing import FakeEmbedder
from tests.evaluation.scripted import MOMENT, Scripted, asked_by, dataset

OWN = [name for name in MEMORIES if name not in ("langmem", "mem0")]
BOUNDED = [name for name in OWN if name != "full-context"]


async def blocks(path, name, sessions, questions, *, budget=1000, embedder=None):
    """Return the blocks of questions about sessions."""
    async with asked_by(path) as made:
        given = Counted(made(Scripted(), "m")), embedder
        async with MEMORIES[name](*given) as memory:
            for session in sessions:
                await memory.ingest(session, moment_of(session) or MOMENT)
            return [await memory.block(each, MOMENT, budget) for each in questions]


@pytest.mark.parametrize("name", BOUNDED)
@pytest.mark.parametrize("budget", [100, 300, 1000])
async def test_a_block_is_within_its_budget(tmp_path, name, budget):
    (conversation,) = dataset(1, filler=40)
    asked = [each.text for each in conversation.asked]
    found = await blocks(
        tmp_path / "r", name, conversation.sessions, asked, budget=budget, embedder=FakeEmbedder()
    )
    # Ours counts the fence as a message, too.
    assert all(expected_tokens(each.text) <= budget for each in found)


@pytest.mark.slow
@pytest.mark.parametrize("name", BOUNDED)
async def test_a_larger_budget_shows_more_of_the_sample(tmp_path, name):
    conversation = load_sample()[0]
    asked = [each.text for each in conversation.questions[:5]]
    few, many = [
        await blocks(tmp_path / str(budget), name, conversation.sessions, asked, budget=budget,
                     embedder=FakeEmbedder())
        for budget in (300, 2000)
    ]  # fmt: skip
    for less, more in zip(few, many, strict=True):
        assert expected_tokens(less.text) <= 300
        assert expected_tokens(more.text) <= 2000
        assert len(less.turns or ()) <= len(more.turns or ())


async def test_the_full_context_is_everything_in_its_order(tmp_path):
    (conversation,) = dataset(1)
    (block,) = await blocks(tmp_path / "r", "full-context", conversation.sessions, ["?"], budget=0)
    assert block.text == (
        "(2023-05-01) Ada: I have a parrot Figaro at home, and it sings.\n"
        "(2023-05-02) Ben: I have a tortoise Otello at home, and it sings."
    )
    assert block.turns == {"D1:1", "D2:1"}


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.text("ab \n<>/é花🙂", max_size=60), min_size=1, max_size=8), st.integers(100, 200)
)
def test_the_last_turns_have_no_gap(texts, budget):
    turns = [
        Turn(id=str(number), speaker="Ada", text=text * 3, said_at=MOMENT)
        for number, text in enumerate(texts)
    ]
    session = Session("session-0001", tuple(turns))

    async def asked():
        async with MEMORIES["last-n"](None, None) as memory:
            await memory.ingest(session, MOMENT)
            return await memory.block("?", MOMENT, budget)

    block = asyncio.run(asked())
    told = [turn.id for turn in turns if turn.words.strip()]
    shown = [name for name in told if name in block.turns]
    assert shown == told[len(told) - len(shown) :]
    assert len(block.text.splitlines()) == len(shown)
    assert expected_tokens(block.text) <= budget
    assert "<" not in block.text


async def test_notes_alone_quote_nobody(tmp_path):
    (conversation,) = dataset(1)
    asked = ["Which pet has Ada?"]
    (block,) = await blocks(tmp_path / "r", "ours-notes", conversation.sessions, asked)
    assert "parrot" not in block.text
    assert block.turns is None
    (block,) = await blocks(tmp_path / "r", "ours-words", conversation.sessions, asked)
    assert "parrot" in block.text
    assert "D1:1" in block.turns


@pytest.mark.parametrize("name", OWN)
async def test_sessions_without_words_are_passed_over(tmp_path, name):
    (conversation,) = dataset(1)
    empty = Session("session-0009", (Turn(id="D9:1", speaker="Ada", text=" \n"),))
    sessions = [empty, *conversation.sessions, Session("session-0010", ())]
    asked, embedder = ["Which pet has Ada?"], FakeEmbedder()
    (block,) = await blocks(tmp_path / "r", name, sessions, asked, embedder=embedder)
    assert "D9:1" not in (block.turns or ())


async def test_vectors_need_an_embedder(tmp_path):
    with pytest.raises(ConfigurationError, match="--embedder"):
        await blocks(tmp_path / "r", "dense", [], [])


async def test_without_instructions_nothing_is_extracted(tmp_path):
    (conversation,) = dataset(1)
    model = Scripted()
    model.follows_instructions = False
    async with asked_by(tmp_path / "r") as made:
        given = Counted(made(model, "m"))
        async with MEMORIES["ours"](given, None) as memory:
            for session in conversation.sessions:
                await memory.ingest(session, moment_of(session))
    assert model.calls == []


@pytest.mark.parametrize(
    ("speaker", "role", "content"),
    [
        ("user", "user", "Hello"),
        ("Human", "user", "Hello"),
        ("assistant", "assistant", "Hello"),
        ("AI", "assistant", "Hello"),
        ("Ada", "user", "Ada: Hello"),
        ("", "user", "Hello"),
        ("Зоя", "user", "Зоя: Hello"),
    ],
)
def test_a_person_is_named_in_the_text(speaker, role, content):
    turn = Turn(text="Hello", speaker=speaker, id="D1:1")
    assert message_of(turn) == {"role": role, "content": content, "id": "D1:1"}


def test_the_moment_of_a_session():
    plain = Turn(text="a")
    dated = Turn(text="a", said_at=datetime(2023, 5, 8))  # noqa: DTZ001 - as some files have it
    assert moment_of(Session("s", (plain,))) is None
    assert moment_of(Session("s", (plain, dated))) == datetime(2023, 5, 8, tzinfo=UTC)
