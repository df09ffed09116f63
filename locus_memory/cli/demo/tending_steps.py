"""The step on the memory that tends itself: what it saves, and what the memory manager returns."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import product
from typing import TYPE_CHECKING, Any, Final

from locus_memory.memory.manager import LLMMemoryManager
from locus_memory.memory.models import Memory, MemoryType
from locus_memory.messages import Message
from locus_memory.state import AgentState

if TYPE_CHECKING:
    from locus_memory.backends.base import Backend

__all__ = [
    "ALLERGY",
    "GREETING",
    "KEEPER",
    "MANY",
    "NAMESPACE",
    "QUESTION",
    "RULE",
    "SAID",
    "SMALL_TALK",
    "TEA",
    "TEA_KEY",
    "WEEKS",
    "overrule",
    "pass_a_year",
    "talk",
]

KEEPER: Final = "tess"
"""The user of this step."""

NAMESPACE: Final = ("locus_memory", "users", KEEPER)

TEA_KEY: Final = "tea"
TEA: Final = "The user likes peppermint tea."
ALLERGY: Final = "The user is allergic to hazelnuts."
RULE: Final = "Always answer in English."
SAID: Final = "We bought the blue tent, and it leaks at the seam."
SMALL_TALK: Final = "What is 19 times 31?"
QUESTION: Final = "What do I bring to the picnic?"
GREETING: Final = "Guten Morgen!"

WEEKS: Final = 52

# In everyday words, so that common words stay common, and other searches keep their order.
_PLANNED: Final = "The user is going to {town} to see a {bird}."
_DRAWN: Final = "The user is to send a drawing of a {bird} to {town}."
_TOWNS: Final = ("Bergen", "Cork", "Delft", "Faro", "Gdansk", "Turku")
_BIRDS: Final = ("crane", "finch", "gull", "heron", "kite", "owl", "raven", "stork", "swan", "tern")

MANY: Final = len(_TOWNS) * len(_BIRDS)
"""The number of facts that are saved at once."""


async def pass_a_year(backend: Backend) -> dict[str, Any]:
    """Save two facts under the date of a year ago, and return what a year made of them."""
    start = datetime.now(UTC) - timedelta(weeks=WEEKS)
    async with LLMMemoryManager(backend.store, clock=start.timestamp) as managers:
        await managers.for_user(KEEPER).save(
            [
                Memory(MemoryType.USER, TEA_KEY, TEA),
                Memory(MemoryType.USER, "allergy", ALLERGY, {"importance": 1.0}),
            ]
        )
    async with _managers(backend) as managers:
        manager = managers.for_user(KEEPER)
        await manager.consolidate()
        kept = [memory async for memory in manager.memories()]
        signs = await manager.vitals(kept)
    return {
        "weeks": WEEKS,
        "kept": [
            {"content": memory.content, "salience": each.salience}
            for memory, each in zip(kept, signs, strict=True)
        ],
    }


async def talk(backend: Backend) -> dict[str, Any]:
    """Save many facts, and say something in a thread; return what two messages are shown."""
    async with _managers(backend) as managers:
        manager = managers.for_user(KEEPER)
        await manager.save(_facts(MemoryType.PROJECT, _PLANNED))
        said = (Message.user(SAID), Message.assistant("A patch will do."))
        await manager.on_session_end(AgentState(messages=said, metadata={"thread_id": "camp"}))
        return {
            "facts": [memory.content async for memory in manager.memories()],
            "shown": [await _shown(manager, query) for query in (SMALL_TALK, QUESTION)],
        }


async def overrule(backend: Backend) -> dict[str, Any]:
    """Fix a rule, save as many facts again, and return what a greeting is shown."""
    async with _managers(backend) as managers:
        manager = managers.for_user(KEEPER)
        rule = await manager.identity.add(RULE)
        await manager.save(_facts(MemoryType.REFERENCE, _DRAWN))
        dates = [memory.metadata["valid_from"] async for memory in manager.memories()]
        return {
            "rule": rule.text,
            "newer_facts": sum(date > rule.created_at for date in dates),
            "shown": [await _shown(manager, GREETING)],
        }


def _managers(backend: Backend) -> LLMMemoryManager:
    return LLMMemoryManager(backend.store)


def _facts(kind: MemoryType, sentence: str) -> Sequence[Memory]:
    return [
        Memory(kind, f"{bird}-{town}".lower(), sentence.format(bird=bird, town=town))
        for town, bird in product(_TOWNS, _BIRDS)
    ]


async def _shown(manager: LLMMemoryManager, query: str) -> dict[str, Any]:
    """Return what a run with this message is shown, and the lines of it without its frame.

    The tokens are those of the whole block.
    """
    plan = await manager.plan(query)
    lines = (plan.block or "").splitlines()
    return {
        "query": query,
        "tokens": plan.tokens,
        "system": plan.stable,
        "lines": [line for line in lines if line.startswith("- ")],
    }
