"""How full a block of memories really is, by the tokenizers of OpenAI's models."""

from __future__ import annotations

import json
from itertools import cycle, islice
from pathlib import Path
from statistics import mean

import splintr
from rows import Row

from locus_memory.conversation.tokens import message_tokens
from locus_memory.memory.inject import render_block
from locus_memory.memory.models import Memory
from locus_memory.messages import Message

HERE = Path(__file__).parent
PACKAGE = HERE.parents[1] / "locus_memory"
BUDGETS = (60, 100, 250, 500, 1000, 2000, 4000)
CUTS = (40, 90, 160, 300, 700)


async def budgets(folder: Path) -> list[Row]:
    """Fill blocks of many budgets with memories of each kind of text."""
    del folder
    encodings = [splintr.Tokenizer.from_pretrained(n) for n in ("cl100k_base", "o200k_base")]
    rows: list[Row] = []
    for kind, text in texts().items():
        shares = [
            message_tokens(
                Message.system(block), lambda piece, e=each: len(e.encode_ordinary(piece))
            )
            / budget
            for each in encodings
            for budget in BUDGETS
            for cut in CUTS
            if (block := render_block(memories(text, cut), token_budget=budget))
        ]
        detail = (
            f"{len(shares)} blocks of {BUDGETS[0]} to {BUDGETS[-1]}; {mean(shares):.2f} on average"
        )
        rows.append(
            Row(f"real tokens of injected {kind} / budget, at most", max(shares), 1, detail)
        )
    return rows


def texts() -> dict[str, str]:
    """Return text of each kind; the estimate was not fitted to any of it."""
    sample = (PACKAGE / "samples" / "second-wind.json").read_text(encoding="utf-8")
    sessions = json.loads(sample)["sessions"]
    spoken = [turn["text"] for session in sessions for turn in session["turns"]]
    return {
        "English": "\n".join(spoken),
        "Chinese": (HERE / "chinese.txt").read_text(encoding="utf-8"),
        "JSON": sample,
        "code": "\n".join(
            (PACKAGE / name).read_text(encoding="utf-8")
            for name in ("agent.py", "registry.py", "store/filters.py", "backends/sqlite/schema.py")
        ),
    }


def memories(text: str, size: int) -> list[Memory]:
    pieces = [text[start : start + size] for start in range(0, len(text) - size, size)]
    return [
        Memory("user", f"fact-{number}", piece)
        for number, piece in enumerate(islice(cycle(p for p in pieces if p.strip()), 200))
    ]
