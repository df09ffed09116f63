"""How much of what the heuristic extractor keeps is right, by labels made by hand.

`python tests/benchmarks/rules_precision.py [--time] [FILE ...]` reads the shipped conversations,
and files of conversations in the shape of `locus_memory/samples`. Each speaker in turn is the
user, the other the assistant; a speaker called `Assistant` is never the user. Each session is one
run, without known memories.

The labels are in `rules_labels.json`. An output counts as right if it is true by its source and
is understood without it. A label has the hash of an output, and no text, so that it also serves
texts that may not be copied. `was` says that the rules of before kept it. An output without a
label counts as wrong and is printed. For the shipped conversations there is a list of the facts
that a person keeps, and recall is the share of them that is found. `--time` also measures the
slowest of some messages of 200,000 characters, alone and as the answer that a user confirms.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from locus_memory.memory.heuristic.digest import digest
from locus_memory.memory.heuristic.extractor import HeuristicExtractor
from locus_memory.memory.models import MemoryChange
from locus_memory.messages import Message

PACKAGE = Path(__file__).parents[2] / "locus_memory"
SHIPPED = (
    PACKAGE / "samples" / "second-wind.json",
    PACKAGE / "evaluation" / "conversations.json",
)
LABELS = Path(__file__).with_name("rules_labels.json")
BAR = 0.95
LENGTH, LONGEST_SECONDS = 200_000, 1.0
PIECES = (
    *("I ", "'", '"', "`", "```", "my ", "not ", ", ", "> ", "\n", "Dear A,\n", "I like ", "a-"),
    *("and I ", "http://", "ha", "{\n", "A: ", "no, ", "\x00", "the ", "from now on ", "call me "),
    *("use x instead of ", "\u0130", "? ", "I need to x ", "we decided ", "such ! forget "),
)


@dataclass(frozen=True)
class Kept:
    """One output: `where` is conversation, user and turn; `said` the text of the turn."""

    where: tuple[str, str, str]
    change: MemoryChange
    said: str

    @property
    def id(self) -> str:
        change = self.change
        told = (*self.where, change.op, change.type.value, change.key, change.content)
        return sha256("\n".join(told).encode()).hexdigest()[:16]


async def kept_of(conversation: dict[str, Any]) -> list[Kept]:
    """Return what is kept of a conversation, each speaker once as the user."""
    sessions = conversation["sessions"]
    found = []
    speakers = {turn["speaker"] for session in sessions for turn in session["turns"]}
    for user in sorted(speakers - {"Assistant", "assistant"}):
        for session in sessions:
            turns = session["turns"]
            for change in await HeuristicExtractor().extract(messages_of(turns, user), ()):
                turn = turns[change.sources[-1]]
                where = (conversation["id"], user, turn["id"])
                found.append(Kept(where, change, turn["text"]))
    return found


def messages_of(turns: list[dict[str, Any]], user: str) -> list[Message]:
    return [
        (Message.user if turn["speaker"] == user else Message.assistant)(turn["text"])
        for turn in turns
    ]


def load(path: Path) -> list[dict[str, Any]]:
    read = json.loads(path.read_text(encoding="utf-8"))
    return read if isinstance(read, list) else [read]


def recall(found: list[Kept], labels: dict[str, Any], wanted: list[list[str]]) -> str:
    """Return how many of the wanted facts (conversation, turn, a word of it) are kept."""
    right = [each for each in found if labels.get(each.id, {}).get("right")]
    hits = sum(
        any(
            each.where[0] == conversation
            and each.where[2] == turn
            and word.casefold() in each.change.content.casefold()
            for each in right
        )
        for conversation, turn, word in wanted
    )
    return f"{hits} of {len(wanted)}"


def row(name: str, found: list[Kept], read: dict[str, Any]) -> float:
    """Print the row of one set, and return its precision."""
    labels = read["sets"].get(name, {})
    before = [label["right"] for label in labels.values() if label.get("was")]
    right = sum(bool(labels.get(each.id, {}).get("right")) for each in found)
    precision = right / len(found) if found else 1.0
    then = f"{sum(before)} of {len(before)}, {sum(before) / len(before):.3f}" if before else "-"
    seen = recall(found, labels, read["wanted"]) if name == "shipped" else "-"
    print(f"| {name} | {then} | {right} of {len(found)}, {precision:.3f} | {seen} |")
    return precision


async def slowest() -> float:
    """Return the seconds of the slowest of the long messages, for the extractor and the digest."""
    times = []
    for piece in PIECES:
        text = (piece * LENGTH)[:LENGTH]
        for messages in (
            [Message.user(text)],
            [Message.assistant(text), Message.user("Yes, exactly.")],
        ):
            began = time.perf_counter()
            await HeuristicExtractor().extract(messages, ())
            middle = time.perf_counter()
            digest(messages)
            times += [middle - began, time.perf_counter() - middle]
    return max(times)


async def main(paths: list[Path], *, timed: bool = False) -> int:
    read = json.loads(LABELS.read_text(encoding="utf-8"))
    sets = {"shipped": [each for path in SHIPPED for each in load(path)]}
    sets |= {path.stem: load(path) for path in paths}
    print("| conversations | right before | right | recall |\n|---|---|---|---|")
    lowest, strangers = 1.0, []
    for name, conversations in sets.items():
        found = [each for part in conversations for each in await kept_of(part)]
        lowest = min(lowest, row(name, found, read))
        strangers += [each for each in found if each.id not in read["sets"].get(name, {})]
    for each in strangers:
        print(f"no label: {each.id} {each.where} {each.change.key}: {each.change.content}")
    longest = await slowest() if timed else 0.0
    if timed:
        print(f"slowest message of {LENGTH:,} characters: {longest * 1e3:.0f} ms")
    return int(lowest < BAR or bool(strangers) or longest > LONGEST_SECONDS)


if __name__ == "__main__":
    given = sys.argv[1:]
    files = [Path(each) for each in given if each != "--time"]
    sys.exit(asyncio.run(main(files, timed="--time" in given)))
