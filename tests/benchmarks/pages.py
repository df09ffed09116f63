"""The pages of `locus-memory ui`: the time that a page of 100 rows takes, on SQLite.

The bars hold for processor time, of all threads: on a quiet machine a page takes no longer, as it
waits for nothing else. The time on the clock is beside it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from statistics import median

import httpx2
from rows import Row
from scale_data import texts, usual_words

from locus_memory import LLMMemoryManager, open_backend
from locus_memory.backends.base import Backend
from locus_memory.memory import Memory, MemoryType
from locus_memory.web import make_app
from locus_memory.web.pages import make_pages

ROWS, THREADS, CHECKPOINTS = 100, 150, 150
FEW, MANY = 1_000, 100_000
WARM, TIMES = 3, 20
CURRENT = ("locus_memory", "users", "ada", "current")
PAGES = {
    "threads": "/threads",
    "users": "/memories",
    "everybody": "/memories?find=" + usual_words(1).replace(" ", "+"),
    "run": "/saw?user=ada",
    "timeline": "/threads/timeline?thread=long&limit=100",
    "conversation": "/threads/at?thread=long",
    "memories": "/memories/list?user=ada&limit=100",
    "the newest memories": "/memories/list?user=ada&limit=100&order=newest",
    "search": "/memories/list?user=ada&limit=100&query=" + usual_words(1).replace(" ", "+"),
    "memory": "/memories/memory?user=ada&type=user&key=fact-000500",
    "items": "/store/namespace?limit=100&" + "&".join(f"namespace={each}" for each in CURRENT),
    "overview": "/",
}


async def _fill(backend: Backend, count: int) -> None:
    memory = LLMMemoryManager(backend.store, max_memories=count).for_user("ada")
    await memory.save([Memory(MemoryType.USER, "fact", "Ada lives by the river.")])
    (first,) = await backend.store.scan(CURRENT, 1)

    said = texts(count, 7)

    def facts() -> Iterator[tuple[tuple[str, ...], str, dict[str, object]]]:
        for number in range(count):
            key = f"fact-{number:06}"
            yield CURRENT, f"user:{key}", {**first.value, "key": key, "content": said[number]}

    made = facts()
    while some := list(islice(made, 2_000)):
        await backend.store.put_batch(some)
    for number in range(THREADS):
        await backend.checkpointer.save({"messages": []}, f"thread-{number:03}")
    messages: list[dict[str, str]] = []
    for number in range(CHECKPOINTS):
        role = "assistant" if number % 2 else "user"
        messages.append({"role": role, "content": f"Something is said about thing {number}."})
        await backend.checkpointer.save({"messages": messages}, "long")


async def _times(backend: Backend) -> dict[str, tuple[float, float]]:
    """Return the median times of each page, of the processor and of the clock, in milliseconds."""
    app = make_app(backend, pages=make_pages())
    transport = httpx2.ASGITransport(app=app)
    found: dict[str, tuple[float, float]] = {}
    async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        for name, path in PAGES.items():
            taken: list[tuple[float, float]] = []
            for _ in range(WARM + TIMES):
                begin = time.process_time(), time.perf_counter()
                answer = await client.get(path)
                end = time.process_time(), time.perf_counter()
                taken.append(((end[0] - begin[0]) * 1_000, (end[1] - begin[1]) * 1_000))
                answer.raise_for_status()
            spent, passed = zip(*taken[WARM:], strict=True)
            found[name] = median(spent), median(passed)
    return found


async def pages(folder: Path) -> list[Row]:
    """The pages with lists, over 1,000 and over 100,000 memories of one user."""
    rows: list[Row] = []
    for count, bar in ((FEW, 50), (MANY, 100)):
        async with open_backend(f"sqlite:{folder}/{count}.db", state_type=None) as backend:
            await _fill(backend, count)
            for name, (spent, passed) in (await _times(backend)).items():
                figure = f"page: {name}, {count:,} memories, ms of processor time"
                rows.append(Row(figure, spent, bar, f"{passed:.0f} ms on the clock"))
    return rows
