"""The gate and the planner: what everyday questions cost, and what questions about memory get."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

from everyday import facts, fill, needs, questions
from rows import Row

from locus_memory.backends.inmemory.store import InMemoryStore
from locus_memory.evaluation.dataset import Conversation, Session, load_sample, read_dataset
from locus_memory.memory.layers.episodes import Episode, episode_put
from locus_memory.memory.manager import LLMMemoryManager
from locus_memory.memory.models import Memory
from locus_memory.memory.options import TendingOptions
from locus_memory.memory.planning.planner import Plan
from locus_memory.memory.scope import Scope, split_key
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
        needed = [(section, await manager.plan(text)) for section, text, _ in needs()]
        await manager.close()
    free = mean(plan.block is None for plan in everyday)
    fired = mean(plan.section != "none" for _, plan in needed)
    right = mean(plan.section == section for section, plan in needed)
    cost = max(plan.tokens for plan in everyday)
    rows = [
        Row(
            f"{len(everyday)} everyday questions that cost no tokens, share",
            free,
            3,
            f"{cost} at most",
        ),
        Row(
            f"{len(needed)} questions about the user that open the gate, share",
            fired,
            3,
            f"{right:.2f} the expected section",
        ),
    ]
    if LOCOMO.is_file():
        rows += await _conversations("LoCoMo's dev half", read_dataset(LOCOMO))
    return rows + await _conversations("the sample", load_sample())


async def _conversations(name: str, conversations: Sequence[Conversation]) -> list[Row]:
    """Return how often the gate fires, and the evidence in the block with the gate and without."""
    opened = await _ask_all(conversations, TendingOptions())
    always = await _ask_all(conversations, TendingOptions(gate_mode="off"))
    fired = mean(each.plan.section != "none" for each in opened)
    with_gate, without = (mean(each.recall for each in asked) for asked in (opened, always))
    tokens = mean(each.plan.tokens for each in opened)
    return [
        Row(
            f"{name}: first messages that open the gate, share",
            fired,
            3,
            f"{len(opened)} questions",
        ),
        Row(
            f"{name}: evidence in 800 tokens, gate - no gate",
            with_gate - without,
            3,
            f"{with_gate:.3f} and {without:.3f}; {tokens:.0f} tokens",
        ),
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
