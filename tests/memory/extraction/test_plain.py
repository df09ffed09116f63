"""Answers in plain text where JSON was asked for."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from locus_memory.errors import InvalidArgumentError, ModelAnswerError
from locus_memory.events import subscribe
from locus_memory.memory.extraction.distillate import parse_plain
from locus_memory.memory.extraction.extractors import LLMExtractor
from locus_memory.memory.models import MemoryType
from locus_memory.messages import Message
from locus_memory.testing.model import FakeModel

TALK = [
    Message.user("I keep bees in Graz, walnuts make me ill, and I bought a bike."),
    Message.assistant("Noted."),
]
EMPTY = '{"changes": [], "notes": []}'


async def extracted(*answers, said=TALK):
    """Return the contents of what was extracted, and how often the model was asked."""
    model = FakeModel(answers)
    made = await LLMExtractor(model).distill(said, [])
    assert made.notes == ()
    assert {each.type for each in made.changes} <= {MemoryType.USER}
    return [each.content for each in made.changes], len(model.calls)


NOTHING = [
    *("", "  \n", "\ufeff", "NONE", "None", "none.", " NONE\n", "- NONE", "1. NONE", "**NONE**"),
    *('"NONE"', "`NONE`", "```\nNONE\n```", "```text\nNONE\n```", "(none)", "null", "NONE!"),
    "<think>The user lives in Paris.</think>NONE",
    "<think>The user lives in Paris.</think>\n\nNONE\n",
    "NONE\n\nThe messages are small talk about bees in Graz.",
]


@pytest.mark.parametrize("said", NOTHING)
async def test_nothing_is_an_answer(said):
    seen = []
    with contextlib.ExitStack() as stack:
        stack.callback(subscribe(seen.append))
        assert await extracted(said) == ([], 1)
    assert seen == []


async def test_an_answer_without_content_is_empty():
    assert await extracted(Message.assistant(None)) == ([], 1)


LINES = [
    "The user keeps bees in Graz.\nThe user is ill from walnuts.",
    "- The user keeps bees in Graz.\n- The user is ill from walnuts.",
    "1. The user keeps bees in Graz.\n2. The user is ill from walnuts.\n",
    "Facts:\n* The user keeps bees in Graz.\n* The user is ill from walnuts.",
    "# Facts\n\n**The user keeps bees in Graz.**\n\n**The user is ill from walnuts.**",
    "```\nThe user keeps bees in Graz.\nThe user is ill from walnuts.\n```",
    "<think>A bike.</think>The user keeps bees in Graz.\n\u2022 The user is ill from walnuts.",
    "The user keeps bees in Graz.\nThe user is ill from walnuts.\nThe user keeps bees in Graz.",
]


@pytest.mark.parametrize("said", LINES)
async def test_plain_lines_are_facts(said):
    facts = ["The user keeps bees in Graz.", "The user is ill from walnuts."]
    assert await extracted(said) == (facts, 1)


@pytest.mark.parametrize(
    ("told", "fact"),
    [
        ("Ich wohne in Graz und halte Bienen.", "Der Nutzer wohnt in Graz."),
        ("J'habite à Lyon, les noix me rendent malade.", "L'utilisateur habite à Lyon."),
        ("Vivo en Sevilla y trabajo como médico.", "El usuario vive en Sevilla."),
        ("Abito a Torino con due gatti.", "L'utente abita a Torino."),
        ("Moro em Lisboa e sou alérgica a nozes.", "A usuária é alérgica a nozes."),
        ("Я живу в Москве и играю на скрипке.", "Пользователь живёт в Москве."),
        ("我住在北京，对花生过敏。", "用户对花生过敏。"),  # noqa: RUF001
        ("大阪に住んでいて、犬を飼っています。", "ユーザーは大阪に住んでいる。"),
        ("저는 서울에 살아요.", "사용자는 서울에 산다."),
        ("أنا أعيش في القاهرة.", "يعيش المستخدم في القاهرة."),
    ],
)
async def test_plain_lines_are_read_in_any_language(told, fact):
    said = [Message.user(told)]
    assert await extracted(f"- {fact}", said=said) == ([fact], 1)


TALKED = [
    "I have nothing to say.",
    "There is nothing to keep.",
    "- Nothing new to remember.",
    "1. The conversation contains no facts about the user.",
    "- Error: rate limit exceeded",
    "The user said nothing worth keeping.",
    "The conversation contains no facts worth remembering.",
    "What shall I do with these messages?",
    "Sure! I'll remember that the user keeps bees in Graz.",
    "The user keeps bees in Graz.\nLet me know if you need more!",
    "The user keeps bees in Graz.\nIs there more to know of Graz?",
    "I'm sorry, I can't help with that.",
    "Graz is lovely, do you like it there?",
    "Es gibt nichts zu merken.",
    "No hay nada que recordar.",
    "Il n'y a rien à retenir.",
    "没有可保存的信息。",
    "記憶すべきことはありません。",
    "Нечего запоминать.",
    "Ich kann dabei nicht helfen.",
    "Bees?",
    "Noted.",
    "<think>The user keeps bees in Graz.</think>",
    "<think>The user keeps bees in Graz.",
    # Beginnings of JSON, and other documents, are no lines.
    '{"changes": [{"op": "add", "type": "user", "content": "The user keeps bees in Graz."',
    '"content": "The user keeps bees in Graz."}',
    'The user keeps bees in Graz. {"other": []}',
    "The user keeps bees in Graz. []",
    "1. user: I keep bees in Graz, walnuts make me ill, and I bought a bike.",
]


@pytest.mark.parametrize("said", TALKED)
async def test_talk_is_repaired_once(said):
    assert await extracted(said, EMPTY) == ([], 2)
    assert await extracted(said, "NONE") == ([], 2)
    with pytest.raises(ModelAnswerError, match="not readable, twice"):
        await extracted(said, said)


async def test_a_repair_may_be_in_plain_lines():
    facts = ["The user keeps bees in Graz."]
    assert await extracted("What?", f"- {facts[0]}") == (facts, 2)


PIECES = st.sampled_from(
    ["NONE", "- ", "The user keeps bees in Graz.", "{", "[]", '"', "<think>", "</think>", "\n", "?"]
)


@given(st.lists(PIECES | st.text(max_size=20), max_size=8).map("".join))
@settings(deadline=None, max_examples=60)
def test_any_text_is_read_or_none(text):
    with contextlib.suppress(InvalidArgumentError):
        made = parse_plain(text, "1. user: I keep bees in Graz.")
        assert made is None or all("\n" not in each.content for each in made.changes)
