"""What the heuristic extractor keeps of real conversations, and what memory costs a turn.

Run it with the path of a file of conversations in the shape of `locus_memory/samples`, or of a
list of such: `python tests/benchmarks/real_conversations.py FILE`. Without one, it takes the
sample. Each speaker in turn is the user, the other the assistant; each session is one run.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from statistics import mean, median
from typing import Any

from locus_memory import AgentState, LLMMemoryManager, Message

SAMPLE = Path(__file__).parents[2] / "locus_memory" / "samples" / "second-wind.json"


async def remember(folder: Path, conversation: dict[str, Any], user: str) -> dict[str, Any]:
    """Live through a conversation with one of its speakers as the user."""
    starts, ends = [], []
    turns = 0
    async with LLMMemoryManager(f"sqlite:{folder / 'memory.db'}") as shared:
        memory = shared.for_user(f"{conversation['id']}/{user}")
        for number, session in enumerate(conversation["sessions"]):
            state = AgentState(metadata={"thread_id": f"session-{number}"})
            for turn in session["turns"]:
                say = Message.user if turn["speaker"] == user else Message.assistant
                state = state.with_message(say(turn["text"]).model_copy(update={"id": turn["id"]}))
                if turn["speaker"] == user:
                    starts.append(await timed(memory.on_session_start(state)))
            turns += len(session["turns"])
            ends.append(await timed(memory.on_session_end(state)) / len(session["turns"]))
        kept = [each async for each in memory.memories()]
    return {
        "who": f"{conversation['id']} {user}",
        "turns": turns,
        "kept": Counter(each.type.value for each in kept),
        "start": median(starts),
        "end": mean(ends),
    }


async def timed(work: Any) -> float:
    before = time.perf_counter()
    await work
    return time.perf_counter() - before


def load(path: Path) -> list[dict[str, Any]]:
    read = json.loads(path.read_text(encoding="utf-8"))
    return read if isinstance(read, list) else [read]


async def main(conversations: list[dict[str, Any]]) -> None:
    print("| conversation, user | turns | kept | injection, ms a turn | extraction, ms a turn |")
    print("|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for conversation in conversations:
            for user in conversation["speakers"]:
                row = await remember(Path(folder), conversation, user)
                kept = ", ".join(f"{count} {kind}" for kind, count in sorted(row["kept"].items()))
                print(
                    f"| {row['who']} | {row['turns']} | {kept or 'nothing'} "
                    f"| {row['start'] * 1e3:.2f} | {row['end'] * 1e3:.2f} |"
                )


if __name__ == "__main__":
    asyncio.run(main(load(Path(sys.argv[1]) if len(sys.argv) > 1 else SAMPLE)))
