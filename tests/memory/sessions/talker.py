"""A plan of two hundred sessions of a few words, and a program that says them and is killed.

Run as a program, this file goes on with the plan where it was left, in a store and with a model
that notes each call in a file before it answers.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import re
import sys
from itertools import count
from pathlib import Path

from locus_memory.backends.sqlite.store import SQLiteStore
from locus_memory.memory.extraction.extractors import LLMExtractor
from locus_memory.memory.manager import LLMMemoryManager
from locus_memory.messages import Message
from locus_memory.state import AgentState

__all__ = ["ROOT", "USERS", "NotingModel", "open_manager", "plan"]

ROOT = Path(__file__).parents[3]
USERS = ("ada", "bo")
_WORDS = (
    "tea please two cats in the garden tomorrow thanks yes",
    "ja bitte zwei Katzen im Garten morgen danke schön",
    "oui merci deux chats dans le jardin demain allergique",
    "sí gracias dos gatos en el jardín mañana alérgica",
    "是的 谢谢 两只猫 花园里 明天见 我过敏 茶",
)
_SAID = re.compile(r"^\d+\. .*?\buser: (.*)$", re.MULTILINE)


def plan(seed):
    """Return sessions: each a thread, its user and messages of one to six words, all different."""
    chance, number, sessions = random.Random(seed), count(), []
    for session in range(200):
        words = chance.choice(_WORDS).split()
        said = [
            " ".join(chance.choices(words, k=chance.randint(1, 6))) + str(next(number))
            for _ in range(chance.choice((1, 1, 1, 2, 3)))
        ]
        sessions.append((f"s{session}", chance.choice(USERS), said))
    return sessions


class NotingModel:
    """A model that notes what it is asked, waits, and answers with a note that names the call."""

    name = "noting"

    def __init__(self, path):
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        self._calls = count()
        self._chance = random.Random(os.getpid())

    async def __call__(self, messages):
        call = f"c{os.getpid()}x{next(self._calls)}"
        said = _SAID.findall(messages[-1].content)
        os.write(self._file, f"{json.dumps([call, said])}\n".encode())
        tell("calling")
        await asyncio.sleep(self._chance.random() * 0.02)
        return Message.assistant(json.dumps({"changes": [], "notes": [{"text": call}]}))

    def close(self):
        os.close(self._file)


def tell(*words):
    """Tell the test what happened."""
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


def open_manager(store, model):
    return LLMMemoryManager(store, extract_fn=LLMExtractor(model), extract_mode="session_end")


async def talk(path, notes, seed, first, turn):
    """Say what is left of the plan, from a turn of a session on."""
    async with SQLiteStore(path) as store, open_manager(store, NotingModel(notes)) as manager:
        for number, (thread, user, said) in enumerate(plan(seed)[first:], first):
            for upto in range(turn, len(said)):
                messages = [
                    message
                    for text in said[: upto + 1]
                    for message in (Message.user(text), Message.assistant("Ok."))
                ]
                metadata = {"thread_id": thread, "user_id": user}
                await manager.on_session_end(
                    AgentState(messages=tuple(messages), metadata=metadata)
                )
                tell("queued", number, upto + 1)
                await asyncio.sleep(0.002)
            turn = 0
    tell("closed")


if __name__ == "__main__":
    asyncio.run(talk(*sys.argv[1:3], *map(int, sys.argv[3:])))
