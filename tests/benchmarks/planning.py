"""The gate and the planner: what everyday questions cost, and what questions about memory get."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import mean

from everyday import facts, fill, needs, questions
from rows import Row, typical

from locus_memory.backends.inmemory.store import InMemoryStore
from locus_memory.errors import LocusMemoryError
from locus_memory.evaluation.dataset import Conversation, Session, load_sample, read_dataset
from locus_memory.memory.layers.episodes import Episode, episode_put
from locus_memory.memory.manager import LLMMemoryManager
from locus_memory.memory.models import Memory
from locus_memory.memory.options import TendingOptions
from locus_memory.memory.planning.gate import Gate
from locus_memory.memory.planning.names import Names
from locus_memory.memory.planning.planner import Plan
from locus_memory.memory.scope import Scope, split_key
from locus_memory.retrieval.embedders.registry import get_embedder
from locus_memory.store.base import BaseStore

LOCOMO = Path(__file__).parents[3] / "shared" / "data" / "locomo-dev.json"
CATEGORIES = ("multi-hop", "single-hop")
MANY = 10_000


@dataclass(frozen=True)
class Asked:
    """What one question got."""

    plan: Plan
    recall: float


async def gate(folder: Path) -> list[Row]:
    """Everyday questions, questions about the user, and questions about conversations."""
    del folder
    async with InMemoryStore() as store:
        manager = LLMMemoryManager(store, max_memories=len(facts()), tending=TendingOptions())
        await fill(store, manager)
        everyday = [await manager.plan(question) for question in questions()]
        harder = [await manager.plan(question) for question in questions("everyday_more.txt")]
        needed = [(section, await manager.plan(text)) for section, text, _ in needs()]
        await manager.close()
    share, cost = _free(everyday)
    rows = [
        Row("everyday questions that cost no tokens, share", share, 0.95, cost, at_least=True),
        Row("the same, harder ones, share", *_with_bar(harder, 0.85), at_least=True),
    ]
    fired = mean(plan.section != "none" for _, plan in needed)
    right = mean(plan.section == section for section, plan in needed)
    detail = f"{len(needed)} questions; {right:.2f} open the expected section"
    rows.append(
        Row("questions about the user that open the gate", fired, 0.9, detail, at_least=True)
    )
    rows.append(_decided())
    rows += await _near_vectors()
    if LOCOMO.is_file():
        named = read_dataset(LOCOMO)
        rows += await _conversations("LoCoMo, dev half", named, 0.9, 0.03)
        rows += await _conversations("LoCoMo, told by the user", list(map(told, named)), 0.9, 0.03)
    return rows + await _conversations("the sample", load_sample(), 0.7, 0.1)


def _decided() -> Row:
    """The rules that read the message alone."""
    names = Names.of([f"Name{n}" for n in range(100)])
    texts = [*questions(), "a" * 100_000]
    gate_of_rules = Gate()
    taken = max(
        typical(lambda: gate_of_rules.decide(text, first_in_thread=True, entities=names), 21)  # noqa: B023 - called at once
        for text in texts
    )
    detail = f"the slowest of {len(texts)} messages, up to 100,000 characters"
    return Row("a decision of the gate's rules, milliseconds", 1e3 * taken, 1, detail)


async def _near_vectors() -> list[Row]:
    """The same questions with the local embedder, where its model is here."""
    try:
        embedder = get_embedder("local")
        await embedder.embed(["tea"], kind="query")
    except LocusMemoryError:
        return []
    shares: list[Row] = []
    async with InMemoryStore() as store:
        manager = LLMMemoryManager(
            store, max_memories=len(facts()), embedder=embedder, tending=TendingOptions()
        )
        await fill(store, manager)
        for name, bar in (("everyday_questions.txt", 0.95), ("everyday_more.txt", 0.85)):
            plans = [await manager.plan(question) for question in questions(name)]
            title = f"with the local embedder, {name}: cost no tokens, share"
            shares.append(Row(title, *_with_bar(plans, bar), at_least=True))
        needed = [(await manager.plan(text), word) for _, text, word in needs()]
        await manager.close()
    fired = mean(plan.section != "none" for plan, _ in needed)
    told = mean(word.casefold() in (plan.block or "").casefold() for plan, word in needed if word)
    title = "with the local embedder: questions about the user that open the gate"
    return [*shares, Row(title, fired, 0.9, f"{told:.2f} show the answer", at_least=True)]


def _free(plans: Sequence[Plan]) -> tuple[float, str]:
    most = max(plan.tokens for plan in plans)
    return mean(plan.block is None for plan in plans), f"{len(plans)} questions; {most} at most"


def _with_bar(plans: Sequence[Plan], bar: float) -> tuple[float, float, str]:
    share, cost = _free(plans)
    return share, bar, cost


def told(conversation: Conversation) -> Conversation:
    """Return a conversation and its questions in the first person, without speakers' names."""
    names = {turn.speaker for session in conversation.sessions for turn in session.turns}
    asked = tuple(
        replace(question, text=_in_first_person(question.text, names))
        for question in conversation.questions
    )
    sessions = tuple(
        replace(session, turns=tuple(replace(turn, speaker="") for turn in session.turns))
        for session in conversation.sessions
    )
    return replace(conversation, questions=asked, sessions=sessions)


def _in_first_person(text: str, names: set[str]) -> str:
    verbs = {"does": "do", "is": "am", "has": "have"}
    for name in names:
        text = re.sub(rf"\b{name}'s\b", "my", text)
        text = re.sub(
            rf"\b(does|did|is|was|has|do|are|have) {name}\b",
            lambda found: f"{verbs.get(found[1].lower(), found[1])} I",
            text,
            flags=re.IGNORECASE,
        )
        text = re.sub(rf"\b{name}\b", "me", text)
    return re.sub(r"\b(?:she|he)\b", "I", re.sub(r"\b(?:her|his)\b", "my", text))


async def _conversations(
    name: str, conversations: Sequence[Conversation], least: float, most: float
) -> list[Row]:
    """Return how often the gate fires, and the evidence that the gate costs."""
    opened = await _ask_all(conversations, TendingOptions())
    always = await _ask_all(conversations, TendingOptions(gate_mode="off"))
    fired = mean(each.plan.section != "none" for each in opened)
    gated, free = (mean(each.recall for each in asked) for asked in (opened, always))
    tokens = mean(each.plan.tokens for each in opened)
    detail = f"{gated:.3f} and {free:.3f}; {tokens:.0f} tokens on average"
    return [
        Row(f"{name}: questions that open the gate", fired, least, f"{len(opened)}", at_least=True),
        Row(f"{name}: evidence without the gate - with it", free - gated, most, detail),
    ]


async def _ask_all(conversations: Sequence[Conversation], options: TendingOptions) -> list[Asked]:
    asked: list[Asked] = []
    for conversation in conversations:
        async with InMemoryStore() as store:
            manager = LLMMemoryManager(store, max_memories=MANY, tending=options)
            await _remember(store, manager, conversation)
            for question in conversation.questions:
                if question.category in CATEGORIES:
                    plan = await manager.plan(question.text)
                    found = {split_key(name)[1] for name in plan.shown}
                    recall = mean(turn in found for turn in question.evidence)
                    asked.append(Asked(plan, recall))
            await manager.close()
    return asked


async def _remember(
    store: BaseStore, manager: LLMMemoryManager, conversation: Conversation
) -> None:
    """Write each turn as a fact, under the id of the turn, and each session as an episode."""
    for session in conversation.sessions:
        turns = [turn for turn in session.turns if turn.words.strip()]
        await manager.save([Memory("user", turn.id or "", turn.spoken) for turn in turns])
        await store.put_batch([episode_put(Scope(manager.namespace), _episode(session))])


def _episode(session: Session) -> Episode:
    said_at = next((turn.said_at for turn in session.turns if turn.said_at), None)
    moment = said_at.isoformat() if said_at else "2026-01-01T00:00:00+00:00"
    return Episode(
        session_id=session.name,
        started_at=moment,
        ended_at=moment,
        summary=" ".join(turn.words for turn in session.turns)[:600],
        entities=tuple({turn.speaker for turn in session.turns}),
    )
