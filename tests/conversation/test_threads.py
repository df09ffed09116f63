"""One manager, several threads."""

import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from locus_memory.conversation.cache import MessageCache
from locus_memory.conversation.summary import manager
from locus_memory.conversation.summary.manager import SummarizingManager
from locus_memory.conversation.summary.text import is_summary
from locus_memory.conversation.window import SlidingWindowManager
from locus_memory.messages import Message

THREADS = 4


@pytest.fixture(autouse=True)
def switching():
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


def at_once(work):
    """Call it in several threads that start together, each with its number."""
    barrier = Barrier(THREADS)

    def run(number):
        barrier.wait(10)
        return work(number)

    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(run, range(THREADS)))


def test_a_cache_of_messages():
    shared = MessageCache(lambda message: message.content, capacity=2)
    messages = [Message.user(str(number)) for number in range(8)]

    def work(number):
        for _ in range(300):
            assert shared.values(messages[number:]) == [m.content for m in messages[number:]]
            assert shared.value(messages[number]) == str(number)

    at_once(work)
    assert len(shared._entries) <= 8


@pytest.mark.slow
@pytest.mark.parametrize("fails", [False, True])
def test_managers(fails, monkeypatch):
    monkeypatch.setattr(manager, "_CACHED", 3)

    def summarize(asked):
        if fails:
            raise RuntimeError("no model")
        return f"summary of {asked[-1].content}"

    rolling = SummarizingManager(3, 1, summarize, max_tokens=1000)
    window = SlidingWindowManager(None, max_tokens=100)

    def work(number):
        messages = []
        for step in range(60):
            messages.append(Message.user(f"{number} said {step}"))
            assert window.apply(messages)[-1] is messages[-1]
            shown = rolling.apply(messages)
            assert shown[-1] is messages[-1]
            foreign = {f"{other} said" for other in range(THREADS) if other != number}
            assert not any(name in m.content for m in shown for name in foreign)
        return any(map(is_summary, shown))

    assert all(at_once(work))
