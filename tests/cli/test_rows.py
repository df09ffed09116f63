"""What lists print with 0, 1, 3 and 10,000 rows, in 80 and 120 columns.

Run this file to write the transcripts anew: `PYTHONPATH=. python -m tests.cli.test_rows`.
"""

from __future__ import annotations

import asyncio
import re
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from rich.cells import cell_len

from locus_memory import LLMMemoryManager, Memory, open_backend
from tests.cli.test_docs import TRANSCRIPTS, WIDTHS, output

COUNTS = (0, 1, 3, 10_000)
CALLS = (
    "threads",
    "checkpoints trip",
    "memories --user ada",
    "memories --all-users",
    "history home --user ada",
    "ls notes",
    "search heron",
    "stats",
)
LONGEST = 8
"""Of a longer output, the first lines and the last ones are kept."""

BEGIN = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
MOMENT = re.compile(r"20\d\d-\d\d-\d\d( \d\d:\d\d:\d\d)?")
TEXTS = (
    "The heron waits by the river.",
    (
        "A heron, a mill and a road that is so long that no line of a terminal has room for all of "
        "it, however wide the window is that somebody opened for it on a large screen."
    ),
    "短いサギの heron.",
)


async def fill(folder, count):
    """Write that many threads, checkpoints of one, memories of a user, and items."""
    async with open_backend(f"sqlite:{folder}/locus.db", state_type=None) as backend:
        notes = [(("notes",), f"note-{n:05}", TEXTS[n % 3]) for n in range(count)]
        manager = LLMMemoryManager(backend.store, max_memories=20_000).for_user("ada")
        for n in range(min(count, 3)):
            await manager.save([Memory("user", "home", f"Ada lives in place {n}.")])
        if count:
            space = ("locus_memory", "users", "ada", "current")
            (first,) = await backend.store.scan(space, 1)
            for n in range(1, count):
                key, said = f"fact-{n:05}", (BEGIN + timedelta(seconds=n)).isoformat()
                value = {**first.value, "key": key, "content": TEXTS[n % 3]}
                notes.append((space, f"user:{key}", {**value, "created_at": said}))
        for start in range(0, len(notes), 2_000):
            await backend.store.put_batch(notes[start : start + 2_000])
        for n in range(count):
            await backend.checkpointer.save({"turn": n}, "trip", f"c{n:05}", metadata={"turn": n})
        for n in range(1, count):
            await backend.checkpointer.save({"turn": 0}, f"thread-{n:05}", "only")


def shortened(text):
    lines = MOMENT.sub(
        lambda found: found[0].translate(str.maketrans("0123456789", "2" * 10)), text
    )
    lines = re.sub(r"(?<=on disk: )[\d,]+", "#", lines).splitlines()
    if len(lines) > LONGEST:
        lines[LONGEST // 2 : -LONGEST // 2] = ["..."]
    return "".join(f"{line}\n" for line in lines)


def transcript(folder, count):
    """Return what all calls print, in both widths."""
    asyncio.run(fill(folder, count))
    parts = []
    for call in CALLS:
        for columns in WIDTHS:
            printed = shortened(output(f"locus-memory {call}", folder, columns))
            parts.append(f"$ {call}  # {columns} columns\n{printed}")
    return "\n".join(parts)


@pytest.mark.slow
@pytest.mark.parametrize("count", COUNTS)
def test_lists_print_what_the_transcripts_say(tmp_path, count):
    assert transcript(tmp_path, count) == (TRANSCRIPTS / f"rows-{count}.txt").read_text()


@pytest.mark.parametrize("count", COUNTS)
def test_no_line_is_wider_than_the_terminal(count):
    shown = (TRANSCRIPTS / f"rows-{count}.txt").read_text()
    for part in shown.split("$ ")[1:]:
        head, *lines = part.splitlines()
        columns = int(head.split("# ")[1].split()[0])
        assert max([cell_len(line) for line in lines], default=0) <= columns


if __name__ == "__main__":
    for each in COUNTS:
        with tempfile.TemporaryDirectory() as made:
            (TRANSCRIPTS / f"rows-{each}.txt").write_text(transcript(Path(made), each))
