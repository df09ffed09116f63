"""The sample conversation of the package, and the turns of an alternative branch."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from locus_memory.cli.conversations.transcripts import read_conversations
from locus_memory.transfer.chats.conversation import Conversation

__all__ = [
    "BRANCH",
    "BRANCH_TURNS",
    "FORK_AFTER",
    "QUERIES",
    "SAMPLE",
    "load_sample",
    "sample_file",
]

SAMPLE: Final = "second-wind"
BRANCH: Final = "second-wind-by-scilly"

FORK_AFTER: Final = 57
"""The last shared turn of the branch, counted from 1."""

BRANCH_TURNS: Final[tuple[dict[str, Any], ...]] = (
    {
        "role": "user",
        "name": "Ines",
        "content": "Then let us go by the Isles of Scilly. We leave on the third, as planned.",
        "id": "B1:1",
    },
    {
        "role": "assistant",
        "name": "Wren",
        "content": "Changed: first leg from Falmouth to St Mary's on 3 July, about thirteen hours.",
        "id": "B1:2",
    },
    {
        "role": "user",
        "name": "Ines",
        "content": "And tell my mother that the flowers will be from Scilly.",
        "id": "B1:3",
    },
)

QUERIES: Final = {
    "what am I allergic to": 15,
    "new departure date": 35,
    "name of the cat": 48,
    "sold my cello": 46,
}
"""Queries, each with the turn that answers it."""


def sample_file() -> str:
    """Return the path of the file of the sample conversation."""
    return str(files("locus_memory.samples").joinpath(f"{SAMPLE}.json"))


def load_sample() -> Conversation:
    """Return the sample conversation."""
    return read_conversations(Path(sample_file()).read_bytes(), f"{SAMPLE}.json")[0]
