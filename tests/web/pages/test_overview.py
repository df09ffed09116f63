from __future__ import annotations

import re

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from locus_memory.events import emit
from locus_memory.web.pages.overview import curve
from locus_memory.web.questions.data import Data
from locus_memory.web.questions.sizes import ContentsAsked, SizesAsked, count_contents, measure
from locus_memory.web.settings import Settings


async def test_an_empty_database_says_what_to_do(browser):
    text = await browser.page("/")
    assert "This database is empty" in text
    assert "locus-memory demo" in text
    assert "No event in the last hour" in text
    assert "No checkpoint to measure yet" in await browser.page("/overview/sizes")


async def test_the_numbers_of_the_database_are_shown(browser, backend):
    state = {"messages": [{"role": "user", "content": "hello " * 50}]}
    for n in range(3):
        await backend.checkpointer.save({**state, "n": n}, "trip")
    for content in ("Ada lives in Riga.", "Ada is a vegetarian."):
        body = {"content": content, "user": "ada"}
        await browser.client.post("/api/v1/memory/remember", json=body)
    await browser.client.post("/api/v1/documents", json={"content": "A text.", "source": "a"})
    text = await browser.page("/")
    found = dict(re.findall(r"<dt>([A-Z]\w+)</dt><dd>([\d,]+)", text))
    assert (found["Threads"], found["Checkpoints"]) == ("1", "3")
    assert (found["Memories"], found["Documents"]) == ("2", "1")
    assert "This database is empty" not in text
    assert "none damaged" in await browser.page("/", seconds=2)


async def test_stored_bytes_are_held_against_the_json_of_each_state(browser, backend):
    states = [{"n": n, "text": "x" * 500} for n in range(4)]
    for state in states:
        await backend.checkpointer.save(state, "trip")
    data = Data(backend, Settings())
    sizes = await measure(data, SizesAsked(seconds=30))
    assert (sizes.threads, sizes.complete, len(sizes.growth)) == (1, True, 4)
    assert sizes.json_bytes == sum(len(orjson.dumps(state)) for state in states)
    usage = await backend.checkpointer.get_storage_stats("trip")
    assert sizes.stored_bytes == usage["compressed_size"]
    assert sizes.growth[-1].json_bytes == sizes.json_bytes
    assert not (await measure(data, SizesAsked(seconds=1e-9))).complete
    text = await browser.page("/overview/sizes")
    assert f"{100 * sizes.stored_bytes / sizes.json_bytes:.1f} %" in text
    assert text.count("<polyline") == 2


async def test_events_are_shown_the_newest_first_and_escaped(plain, browsing):
    async with browsing(plain) as browser:
        emit("memory.duplicate_dropped", key="<script>alert(1)</script>")
        emit("memory.forgotten", count=2)
        text = await browser.page("/overview/events")
        assert "<script>alert" not in text
        assert "&lt;script&gt;" in text
        assert text.index("memory.forgotten") < text.index("memory.duplicate_dropped")


async def test_memories_are_counted_without_a_user_as_well(plain, browsing):
    async with browsing(plain) as browser:
        for body in ({"content": "It rains."}, {"content": "Ada swims.", "user": "ada"}):
            await browser.client.post("/api/v1/memory/remember", json=body)
    counted = await count_contents(Data(plain, Settings()), ContentsAsked())
    assert (counted.memories, counted.documents, counted.complete) == (2, 0, True)


@pytest.mark.slow
@given(st.lists(st.integers(0, 10**12), min_size=1, max_size=50))
def test_a_curve_stays_inside_its_picture(values):
    values.sort()
    points = [
        tuple(map(float, each.split(","))) for each in curve(values, max(values) or 1).split()
    ]
    assert len(points) == len(values)
    assert all(0 <= x <= 640 and 0 <= y <= 180 for x, y in points)
    assert points == sorted(points, key=lambda each: (each[0], -each[1]))
