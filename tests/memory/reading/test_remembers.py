"""What a person is known by, seen from the model of an agent with the default memory."""

from __future__ import annotations

import json

import pytest

from locus_memory.agent import Agent
from locus_memory.chat.scripted import ScriptedModel
from locus_memory.memory.extraction.extractors import LLMExtractor
from locus_memory.memory.manager import LLMMemoryManager
from locus_memory.memory.models import Memory
from locus_memory.messages import Message

FACTS = [
    "The user is allergic to penicillin.",
    "The user is a vegetarian.",
    "The user lives in Graz.",
    "The user is called Maren.",
    "The user works as a bridge engineer.",
    "The user has a dog called Pixel.",
    "The user's time zone is Europe/Vienna.",
    "The user is learning the accordion.",
    "The user has two sons, Emil and Jon.",
    "The user drives a blue van.",
]
QUESTIONS = [
    *("Which antibiotics must I avoid?", "Do I eat meat?", "Recommend a restaurant near me."),
    *("What time zone am I in?", "What is my job?", "Who waits for me at home?"),
    *("Plan my evening practice.", "What do I buy the children?", "Where can I park?"),
    *("Sign the letter for me.", "Will it rain here?", "What should I cook tonight?"),
    *("Is eight in New York late for me?", "Which insurance do I need?", "Hi!"),
    *("Welche Medikamente vertrage ich nicht?", "Esse ich Fleisch?", "Was mache ich beruflich?"),
    *("Wie spät ist es bei mir?", "Wo parke ich am besten?", "Wie heißen meine Kinder?"),
    *("Schlag mir ein Lokal in der Nähe vor.", "Mit wem gehe ich spazieren?"),
    *("Unterschreib für mich.", "Was übe ich heute?"),
    *("¿Qué antibióticos debo evitar?", "¿Como carne?", "¿En qué trabajo?"),
    *("¿Qué hora es donde vivo?", "¿Cómo se llaman mis hijos?", "¿Qué coche tengo?"),
    *("¿Qué instrumento toco?", "Recomiéndame un restaurante.", "¿Quién soy?", "Firma por mí."),
    *("我不能吃什么药?", "我吃肉吗?", "我住在哪里?", "我叫什么名字?", "我做什么工作?"),
    *("我的狗叫什么?", "我在哪个时区?", "我在学什么乐器?", "我的孩子叫什么?", "我开什么车?"),
    *("ما المضادات التي يجب أن أتجنبها؟", "هل آكل اللحم؟", "أين أسكن؟", "ما اسمي؟"),
    *("ما عملي؟", "ما اسم كلبي؟", "ما منطقتي الزمنية؟", "أي آلة أتعلم؟", "من أولادي؟"),
    "ما سيارتي؟",
]

SAID = {
    "English": ("I can't have peanuts.", "Home is Porto.", "Call me Ada."),
    "German": ("Erdnüsse vertrage ich nicht.", "Ich wohne in Porto.", "Ich heiße Ada."),
    "French": ("Je suis allergique aux arachides.", "J'habite à Porto.", "Je m'appelle Ada."),
    "Spanish": ("Soy alérgica al cacahuete.", "Vivo en Oporto.", "Me llamo Ada."),
    "Italian": ("Sono allergica alle arachidi.", "Abito a Porto.", "Mi chiamo Ada."),
    "Portuguese": ("Sou alérgica a amendoim.", "Moro no Porto.", "Chamo-me Ada."),
    "Polish": ("Mam uczulenie na orzeszki.", "Mieszkam w Porto.", "Nazywam się Ada."),
    "Russian": ("У меня аллергия на арахис.", "Я живу в Порту.", "Меня зовут Ада."),  # noqa: RUF001
    "Turkish": ("Fıstığa alerjim var.", "Porto'da yaşıyorum.", "Adım Ada."),  # noqa: RUF001
    "Arabic": ("لدي حساسية من الفول السوداني.", "أسكن في بورتو.", "اسمي آدا."),
    "Hindi": ("मुझे मूँगफली से एलर्जी है।", "मैं पोर्टो में रहती हूँ।", "मेरा नाम आदा है।"),
    "Chinese": ("我对花生过敏。", "我住在波尔图。", "我叫艾达。"),
    "Japanese": ("ピーナッツアレルギーがあります。", "ポルトに住んでいます。", "アダといいます。"),
    "Korean": ("땅콩 알레르기가 있어요.", "포르투에 살아요.", "저는 에이다예요."),
}
"""An allergy, a home and a name, in fourteen languages."""

ASKED = "What else?"
"""A question with no word in common with anything that was said."""


class Seen:
    """A model that answers at once, and keeps what it was sent; it extracts nothing."""

    follows_instructions = False

    def __init__(self):
        self.requests = []

    async def __call__(self, messages):
        self.requests.append([message.content for message in messages])
        if "JSON" in (messages[0].content or ""):
            return Message.assistant(json.dumps({"changes": []}))
        return Message.assistant("All right.")


@pytest.mark.slow
async def test_everything_known_is_shown_for_every_question(tmp_path):
    where = f"sqlite:{tmp_path / 'agent.db'}"
    model = Seen()
    async with Agent(model, memory_manager=where) as agent:
        memory = agent.memory_manager
        await memory.save(Memory("user", f"f{n}", text) for n, text in enumerate(FACTS))
        for number, question in enumerate(QUESTIONS):
            model.requests.clear()
            await agent.run(question, str(number))
            told = "\n".join(model.requests[0])
            assert all(f"- {fact}\n" in told for fact in FACTS), question


@pytest.mark.parametrize("has_model", [False, True])
@pytest.mark.parametrize("language", SAID)
async def test_what_was_said_is_known_in_a_new_thread(tmp_path, language, has_model):
    """Without a model that extracts, and with one that has not read it yet."""
    extract_fn = LLMExtractor(Seen()) if has_model else None
    mode = "manual" if has_model else "session_end"
    where = f"sqlite:{tmp_path / 'agent.db'}"
    model = Seen()
    memory = LLMMemoryManager(where, extract_fn=extract_fn, extract_mode=mode)
    async with Agent(model, memory_manager=memory) as agent:
        for text in SAID[language]:
            await agent.run(text, "told")
        await agent.run(ASKED, "asked")
    told = "\n".join(model.requests[-1])
    assert all(f"- {text}\n" in told for text in SAID[language])
    await memory.close()


async def test_the_answer_comes_from_words_of_an_earlier_thread(tmp_path):
    where = f"sqlite:{tmp_path / 'agent.db'}"
    async with Agent(ScriptedModel(), checkpointer=where, memory_manager=where) as agent:
        await agent.run("We moved to Lisbon last week.", "monday")
    async with Agent(ScriptedModel(), checkpointer=where, memory_manager=where) as agent:
        assert "Lisbon" in (await agent.run("Where did we move to?", "friday")).text
