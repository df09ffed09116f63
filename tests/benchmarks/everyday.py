"""A scope of realistic facts and sessions, and everyday questions that need none of them."""

from __future__ import annotations

from pathlib import Path

from locus_memory.memory.layers.episodes import Episode, Note, episode_put
from locus_memory.memory.manager import LLMMemoryManager
from locus_memory.memory.models import Memory
from locus_memory.memory.scope import Scope
from locus_memory.store.base import BaseStore

HERE = Path(__file__).parent

EPISODES = (
    ("02", "Maren compared dampers for the footbridge at Puntigam.", ("Puntigam", "Obermayr")),
    ("05", "Maren planned the night train to Hamburg with Tobias.", ("Hamburg", "Gotland")),
    ("09", "Maren asked how to adjust insulin for Pixel while travelling.", ("Pixel", "Sattler")),
    ("14", "Maren rehearsed the talk on timber fatigue.", ("Trondheim", "Hagen")),
    ("18", "Maren chose larch for the worktop of the kitchen.", ("Zechner",)),
    ("21", "Maren debugged the script for the load tables.", ("Tekla",)),
)


def questions(name: str = "everyday_questions.txt") -> list[str]:
    """Return the questions of a file, each of which is the first message of a thread.

    Those of `everyday_more.txt` are chosen to be hard: they speak in the first person,
    or have words of the facts.
    """
    return (HERE / name).read_text(encoding="utf-8").splitlines()


def facts() -> list[Memory]:
    """Return sixty facts; none is a rule, since rules are shown with any message."""
    lines = (HERE / "everyday_facts.txt").read_text(encoding="utf-8").splitlines()
    pairs = [line.split("|", 1) for line in lines]
    return [Memory(kind, f"fact-{n}", text) for n, (kind, text) in enumerate(pairs)]


async def fill(store: BaseStore, manager: LLMMemoryManager) -> None:
    """Write the facts and the sessions into the scope of a manager."""
    await manager.save(facts())
    scope = Scope(manager.namespace)
    for number, (day, summary, entities) in enumerate(EPISODES):
        moment = f"2026-11-{day}T18:00:00+00:00"
        episode = Episode(
            session_id=f"session-{number}",
            started_at=moment,
            ended_at=moment,
            notes=(Note(f"{summary} {', '.join(entities)}."),),
        )
        await store.put_batch([episode_put(scope, episode)])


def needs() -> list[tuple[str, str, str]]:
    """Return questions about the facts and sessions: a section, the question, and a word.

    The word is one that the block has to hold; empty if no rule can find one.
    """
    lines = (HERE / "everyday_needs.txt").read_text(encoding="utf-8").splitlines()
    return [(section, text, word) for section, text, word in (line.split("|") for line in lines)]
