"""Work on a large text leaves the event loop: other tasks of the program go on meanwhile."""

from __future__ import annotations

import asyncio
import sys
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from locus_memory import LLMMemoryManager, Message
from locus_memory._internal.offload import aside
from locus_memory.backends.inmemory import space
from locus_memory.backends.inmemory.store import InMemoryStore
from locus_memory.documents import DocumentIndex
from locus_memory.memory.phrases import wording
from locus_memory.memory.secrets import detection
from locus_memory.resources.tree import MemoryTree

LARGE = 200_000
TEXT = "".join(f"Word{number:x} of sentence {number}. " for number in range(LARGE // 25))


@given(st.integers(0, 100_000), st.integers())
def test_what_reads_little_stays_and_what_reads_much_goes(size, value):
    """The result is the same in both."""
    found = asyncio.run(aside(size, lambda given: (given, threading.current_thread()), value))
    assert found[0] == value
    assert (found[1] is threading.main_thread()) == (size < 5_000)


async def test_an_error_is_the_same():
    def fail():
        raise ValueError("no")

    for size in (0, LARGE):
        with pytest.raises(ValueError, match="no"):
            await aside(size, fail)


@pytest.fixture
def on_loop(monkeypatch):
    """How many characters these functions read on the event loop in one go."""
    read = []

    def watch(module, name, size):
        real = getattr(module, name)

        def watched(*given, **options):
            if threading.current_thread() is threading.main_thread():
                read.append(size(*given))
            return real(*given, **options)

        for each in list(sys.modules.values()):
            if getattr(each, "__name__", "").startswith("locus_memory") and (
                vars(each).get(name) is real
            ):
                monkeypatch.setattr(each, name, watched)

    watch(detection, "find_secret", len)
    watch(wording, "is_staged", lambda messages: sum(map(len, map(wording.text_of, messages))))
    for module in list(sys.modules.values()):
        if getattr(module, "__name__", "").startswith("locus_memory"):
            for name in ("chunk_text", "levels_of", "passage_of"):
                if name in vars(module) and vars(module)[name].__module__ == module.__name__:
                    watch(module, name, lambda text, *_, **__: len(text))
    return read


async def test_documents_are_cut_and_indexed_elsewhere(on_loop):
    async with DocumentIndex(InMemoryStore(), kind="text") as index:
        await index.add(TEXT, source="long", kind="markdown")
        await index.retrieve("sentence")
    assert max(on_loop, default=0) < 5_000


async def test_a_memory_reads_long_messages_elsewhere(on_loop):
    said = [Message.user(TEXT), Message.assistant(TEXT[::-1])]
    many = [Message.user(TEXT[start : start + 400]) for start in range(0, LARGE, 400)]
    async with LLMMemoryManager(InMemoryStore()) as manager:
        for messages in (said, many):
            await manager.extract(messages)
            await manager.on_session_end(messages)
            await manager.drain()
            await manager.on_session_start([Message.user("A sentence?")])
    assert max(on_loop, default=0) < 5_000


async def test_a_resource_is_read_elsewhere(on_loop):
    async with MemoryTree(InMemoryStore()) as tree:
        await tree.write("memory://notes/long.md", TEXT)
        await tree.read("memory://notes/long.md", level="overview")
    assert max(on_loop, default=0) < 5_000


async def test_the_words_of_many_values_are_read_elsewhere(monkeypatch):
    """A word that was never read takes longer than others: each may be one."""
    seen = []
    real = space.count_tokens

    def watched(text, *given, **options):
        seen.append(threading.current_thread() is threading.main_thread())
        return real(text, *given, **options)

    monkeypatch.setattr(space, "count_tokens", watched)
    parts = {f"k{n}": {"text": TEXT[n * 2000 : n * 2000 + 2000]} for n in range(64)}
    await InMemoryStore().put_batch([(("n",), key, value) for key, value in parts.items()])
    assert seen
    assert not any(seen)
