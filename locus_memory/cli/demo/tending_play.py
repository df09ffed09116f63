"""What a memory keeps and shows: the output of the step, its checks, and what it saves."""

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
    from locus_memory.cli.demo.stage import Stage

__all__ = ["KEEPER", "NAMESPACE", "TEA_KEY", "play_tending"]

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


_FADED: Final = 0.01
_FLOOR: Final = 0.2
_PRINTED: Final = 3


def play_tending(stage: Stage) -> None:
    """Play the step on the demo's database, for a user of its own."""
    stage.title("What a memory keeps and shows: unused facts fade, and everything known is shown")
    found = stage.found["tending"] = dict[str, Any]()
    for step in (_fade, _talk, _overrule):
        step(stage, found)


def _fade(stage: Stage, found: dict[str, Any]) -> None:
    year = found["year"] = stage.session.run(_pass_a_year)
    stage.say(f"{year['weeks']} weeks later, in which nobody asked about two facts:")
    for kept in year["kept"]:
        stage.say(f"  today: {kept['content']} [salience {kept['salience']:.2f}]")
    salience = {kept["content"]: kept["salience"] for kept in year["kept"]}
    stage.check(
        "the fact that nobody used has faded, and is still known",
        ok=0 <= salience.get(TEA, 1) < _FADED,
    )
    stage.check(
        "the allergy, a fact of importance 1.0, has not faded below the floor",
        ok=salience.get(ALLERGY, 0) >= _FLOOR,
    )


def _talk(stage: Stage, found: dict[str, Any]) -> None:
    talk = found["talk"] = stage.session.run(_shown_in_talk)
    stage.say(f"now {len(talk['facts'])} facts are known, and the user said {SAID!r};")
    stage.say("what the model is shown of them:")
    _print(stage, talk["shown"])
    known = {f"- {text}" for text in (*talk["facts"], SAID)}
    stage.check(
        "all facts are shown, and the user's own words, whatever the message says",
        ok=len(talk["facts"]) > MANY and all(known <= set(each["lines"]) for each in talk["shown"]),
    )
    stage.check(
        "they stand in the system prompt, which is the same for both messages",
        ok=len({each["system"] for each in talk["shown"]}) == 1
        and all(line in str(talk["shown"][0]["system"]) for line in known),
    )


def _overrule(stage: Stage, found: dict[str, Any]) -> None:
    ruled = found["override"] = stage.session.run(_overruled)
    newer = ruled["newer_facts"]
    stage.say(f"the user fixes a rule, {ruled['rule']!r}, and {newer} newer facts follow:")
    _print(stage, ruled["shown"])
    stage.check(
        f"with {newer} newer facts, the rule still reaches the model",
        ok=newer == MANY and ruled["shown"][0]["lines"][:1] == [f"- always: {RULE}"],
    )


def _print(stage: Stage, shown: Sequence[dict[str, Any]]) -> None:
    for each in shown:
        stage.say(f"> {each['query']}")
        first, last = each["lines"][:_PRINTED], each["lines"][_PRINTED:][-1:]
        stage.say(f"  {len(each['lines'])} lines, {each['tokens']} tokens")
        for line in (*first, "...", *last):
            stage.say(f"  {line}")


async def _pass_a_year(backend: Backend) -> dict[str, Any]:
    """Save two facts under the date of a year ago, and return what a year made of them."""
    start = datetime.now(UTC) - timedelta(weeks=WEEKS)
    async with LLMMemoryManager(backend.store, clock=start.timestamp) as managers:
        await managers.for_user(KEEPER).save(
            [
                Memory(MemoryType.USER, TEA_KEY, TEA),
                Memory(MemoryType.USER, "allergy", ALLERGY, {"importance": 1.0}),
            ]
        )
    async with LLMMemoryManager(backend.store) as managers:
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


async def _shown_in_talk(backend: Backend) -> dict[str, Any]:
    """Save many facts, and say something in a thread; return what two messages are shown."""
    async with LLMMemoryManager(backend.store) as managers:
        manager = managers.for_user(KEEPER)
        await manager.save(_facts(MemoryType.PROJECT, _PLANNED))
        said = (Message.user(SAID), Message.assistant("A patch will do."))
        await manager.on_session_end(AgentState(messages=said, metadata={"thread_id": "camp"}))
        return {
            "facts": [memory.content async for memory in manager.memories()],
            "shown": [await _shown(manager, query) for query in (SMALL_TALK, QUESTION)],
        }


async def _overruled(backend: Backend) -> dict[str, Any]:
    """Fix a rule, save as many facts again, and return what a greeting is shown."""
    async with LLMMemoryManager(backend.store) as managers:
        manager = managers.for_user(KEEPER)
        rule = await manager.identity.add(RULE)
        await manager.save(_facts(MemoryType.REFERENCE, _DRAWN))
        dates = [memory.metadata["valid_from"] async for memory in manager.memories()]
        return {
            "rule": rule.text,
            "newer_facts": sum(date > rule.created_at for date in dates),
            "shown": [await _shown(manager, GREETING)],
        }


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
