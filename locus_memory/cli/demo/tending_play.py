"""What a memory keeps and shows: the output of the step, its checks, and what it saves."""

from __future__ import annotations

import time
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Final

from locus_memory.memory.manager import LLMMemoryManager
from locus_memory.memory.models import Memory, MemoryType
from locus_memory.messages import Message
from locus_memory.state import AgentState

if TYPE_CHECKING:
    from locus_memory.backends.base import Backend
    from locus_memory.cli.demo.stage import Stage

__all__ = ["KEEPER", "TEA_KEY", "play_tending"]

KEEPER: Final = "tess"
"""The user of this step."""

TEA_KEY: Final = "tea"
TEA: Final = "The user likes peppermint tea."
ALLERGY: Final = "The user is allergic to hazelnuts."
RULE: Final = "Always answer in English."
SAID: Final = "We bought the blue tent, and it leaks at the seam."
SMALL_TALK: Final = "What is 19 times 31?"
QUESTION: Final = "What do I bring to the picnic?"
GREETING: Final = "Guten Morgen!"

# In everyday words, so that common words stay common, and other searches keep their order.
_PLANNED: Final = "The user is going to {town} to see a {bird}."
_DRAWN: Final = "The user is to send a drawing of a {bird} to {town}."
_TOWNS: Final = ("Bergen", "Cork", "Delft", "Faro", "Gdansk", "Turku")
_BIRDS: Final = ("crane", "finch", "gull", "heron", "kite", "owl", "raven", "stork", "swan", "tern")

_FADED: Final = 0.01
_FLOOR: Final = 0.2
_PRINTED: Final = 3
_WEEK: Final = 7 * 86_400


def play_tending(stage: Stage) -> None:
    """Play the step on the demo's database, for a user of its own."""
    user = ("--user", KEEPER)
    stage.title("What a memory keeps and shows: unused facts fade, and everything known is shown")
    first = [
        Memory(MemoryType.USER, TEA_KEY, TEA),
        Memory(MemoryType.USER, "allergy", ALLERGY, {"importance": 1.0}),
    ]
    stage.session.run(partial(_save, facts=first, weeks=52))
    stage.say("a year later, in which nobody asked about two facts:")
    stage.ask("consolidate", *user)
    rows = stage.ask("memories", *user)["memories"]
    salience = {row["content"]: row["salience"] for row in rows}
    for content, value in salience.items():
        stage.say(f"  today: {content} [salience {value:.2f}]")
    stage.check(
        "the fact that nobody used has faded, and is still known",
        ok=0 <= salience.get(TEA, 1) < _FADED,
    )
    stage.check(
        "the allergy, a fact of importance 1.0, has not faded below the floor",
        ok=salience.get(ALLERGY, 0) >= _FLOOR,
    )
    planned = _facts(MemoryType.PROJECT, _PLANNED)
    stage.session.run(partial(_save, facts=planned, said=SAID))
    stage.say(f"now {len(planned)} more are known, and the user said {SAID!r};")
    known = {f"- {each}" for each in (TEA, ALLERGY, SAID, *(fact.content for fact in planned))}
    shown = [_recalled(stage, query) for query in (SMALL_TALK, QUESTION)]
    stage.check(
        "all facts are shown, and the user's own words, whatever the message says",
        ok=all(known <= set(lines) for lines in shown),
    )
    stage.ask("identity", "add", RULE, *user)
    stage.say(f"the user fixes a rule, {RULE!r}, and {len(planned)} newer facts follow:")
    stage.session.run(partial(_save, facts=_facts(MemoryType.REFERENCE, _DRAWN)))
    stage.check(
        f"with {len(planned)} newer facts, the rule still reaches the model",
        ok=_recalled(stage, GREETING)[:1] == [f"- always: {RULE}"],
    )


def _facts(kind: MemoryType, sentence: str) -> list[Memory]:
    return [
        Memory(kind, f"{bird}-{town}".lower(), sentence.format(bird=bird, town=town))
        for town, bird in product(_TOWNS, _BIRDS)
    ]


async def _save(
    backend: Backend, *, facts: list[Memory], weeks: int = 0, said: str | None = None
) -> None:
    """Save facts under the date of some weeks ago, and what the user said in a thread."""

    def clock() -> float:
        return time.time() - weeks * _WEEK

    async with LLMMemoryManager(backend.store, clock=clock) as managers:
        manager = managers.for_user(KEEPER)
        await manager.save(facts)
        if said is not None:
            messages = (Message.user(said), Message.assistant("A patch will do."))
            state = AgentState(messages=messages, metadata={"thread_id": "camp"})
            await manager.on_session_end(state)


def _recalled(stage: Stage, query: str) -> list[str]:
    """Print a part of what the model is shown for a message, and return its lines."""
    block = stage.ask("recall", query, "--user", KEEPER)["block"] or ""
    lines = [line for line in block.splitlines() if line.startswith("- ")]
    stage.say(f"> {query}")
    for line in (*lines[:_PRINTED], "...", *lines[_PRINTED:][-1:]):
        stage.say(f"  {line}")
    return lines
