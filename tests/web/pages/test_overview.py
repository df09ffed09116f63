from __future__ import annotations

import re
from base64 import b64encode

import pytest

from locus_memory import Agent, LLMMemoryManager, Memory, ScriptedModel
from locus_memory.events import emit
from locus_memory.registry import open_backend
from locus_memory.web.questions.data import Data
from locus_memory.web.questions.happened import count_contents
from locus_memory.web.settings import Settings


async def test_an_empty_database_says_what_to_do(browser):
    text = await browser.page("/")
    assert "This database is empty" in text
    assert "locus-memory demo" in text
    assert "No event in the last hour" in text


def talk(*texts, **rest):
    roles = ("user", "assistant")
    return {
        "messages": [{"role": roles[n % 2], "content": text} for n, text in enumerate(texts)],
        **rest,
    }


async def test_what_happened_is_shown_the_newest_first(browser, backend):
    await backend.checkpointer.save(talk("Where is <b>Riga</b>?", "In Latvia."), "trip")
    await backend.checkpointer.save(
        talk("A cake?", "Yes.", "With nuts?"), "cake", metadata={"user_id": "ada"}
    )
    for content, key in (("Ada lives in Riga.", "home"), ("Ada lives in Rome.", "home")):
        body = {"content": content, "key": key, "user": "ada"}
        await browser.client.post("/api/v1/memory/remember", json=body)
    text = await browser.page("/")
    found = dict(re.findall(r"<dt>([A-Z][\w ]+)</dt><dd>([\d,]+)", text))
    assert (found["Threads"], found["Memories"]) == ("2", "1")
    assert "of 1 user" in text
    sessions = text[text.index("Last sessions") : text.index("New and changed")]
    assert sessions.index("A cake?") < sessions.index("Where is &lt;b&gt;Riga")
    assert "With nuts?" in sessions
    assert re.search(r'class="num">2</td>', sessions)
    assert "Ada lives in Rome." in text
    assert ">changed <time" in text.replace("\n", "")
    assert "This database is empty" not in text
    assert "none damaged" in await browser.page("/", seconds=2)


async def test_a_run_costs_the_mean_of_the_last_runs(plain, browsing):
    memory = LLMMemoryManager(plain.store)
    ada = memory.for_user("ada")
    await ada.save([Memory("user", "home", "Ada lives in Rome.")])
    async with memory, Agent(ScriptedModel(), memory_manager=memory) as agent:
        for thread in ("a", "b"):
            await agent.run(f"Hello from {thread}.", thread, user_id="ada")
        runs = await ada.saw(None, limit=10)
    async with browsing(plain) as browser:
        text = await browser.page("/")
    assert f"<dd>{sum(run.tokens for run in runs) // 2} tokens" in text
    assert text.index("Hello from b.") < text.index("Hello from a.")


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
    assert await count_contents(Data(plain, Settings())) == (0, 2, 1)


@pytest.mark.parametrize("path", ["/", "/threads", "/memories", "/memories?find=Rome", "/saw"])
async def test_what_cannot_be_read_hides_nothing_else(tmp_path, browsing, path):
    """A database has been read without its key since, and some of it is plain."""
    url, key = f"sqlite:{tmp_path / 'agent.db'}", b64encode(b"1" * 32).decode()
    for number, options in enumerate(({"encryption": f"a={key}"}, {})):
        async with open_backend(url, **options) as backend:
            await backend.checkpointer.save(talk(f"Question {number}"), f"thread-{number}")
            ada = LLMMemoryManager(backend.store).for_user(f"ada-{number}")
            await ada.save([Memory("user", "home", f"Ada {number} lives in Rome.")])
    async with open_backend(url) as backend, browsing(backend) as browser:
        text = await browser.page(path)
    if path == "/threads":
        assert "thread-0" in text
        assert "Question 1" in text
    if path.startswith("/memories"):
        assert "Ada 1 lives in Rome." in text
