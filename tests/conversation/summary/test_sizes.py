"""How many tokens a summary gets."""

import pytest

from locus_memory import InMemoryStore
from locus_memory.conversation.summary.manager import SummarizingManager
from locus_memory.conversation.summary.text import is_summary, text_of_summary
from locus_memory.conversation.tokens import count_tokens
from locus_memory.messages import Message

BIG = "word " * 1500


def said(count, start=0):
    return [Message.user(f"message {number}") for number in range(start, start + count)]


def big(asked):
    return BIG


def summary_in(shown):
    [found] = [message for message in shown if is_summary(message)]
    return found


@pytest.mark.parametrize("counter", [None, len, lambda text: len(text.split())])
async def test_one_made_or_stored_or_fed_back_is_shortened_to_a_quarter(counter):
    store = InMemoryStore()
    messages = said(40)
    roomy = SummarizingManager(6, 2, big, store=store)
    limits = {"max_tokens": 1200, "token_counter": counter}
    large = await roomy.async_apply(messages)
    stored = await SummarizingManager(6, 2, big, store=store, **limits).async_apply(messages)
    tight = SummarizingManager(6, 2, big, **limits)
    for shown in (stored, tight.apply(messages), tight.apply(large)):
        size = count_tokens([summary_in(shown)], counter)
        assert 250 < size <= 300
        assert text_of_summary(summary_in(shown)).startswith("word word")
        assert shown[-2:] == messages[-2:]
    again = tight.apply(large)
    assert again == shown
    assert again[0] is shown[0]
    assert len(await store.list_keys(("locus_memory", "summaries"))) == 1


async def test_a_tight_manager_does_not_cut_what_others_have():
    store = InMemoryStore()
    messages = said(40)
    await SummarizingManager(6, 2, big, store=store, max_tokens=300).async_apply(messages)
    roomy = SummarizingManager(6, 2, store=store)
    assert text_of_summary((await roomy.async_apply(messages))[0]) == BIG.strip()


async def test_one_without_any_text_is_not_stored():
    store = InMemoryStore()
    shown = await SummarizingManager(6, 2, store=store, max_tokens=40).async_apply(said(40))
    assert not any(map(is_summary, shown))
    assert await store.list_namespaces() == []


@pytest.mark.parametrize("text", ["<" * 3000, "\u6f22" * 3000, "short"])
@pytest.mark.parametrize("max_tokens", [1, 3, 10, 40, 100, 140, 200, 300])
def test_the_fence_is_counted(max_tokens, text):
    manager = SummarizingManager(6, 2, lambda asked: text, max_tokens=max_tokens)
    for count in (7, 20, 60):
        shown = manager.apply(said(count))
        assert shown[-1].content == f"message {count - 1}"
        for message in shown:
            if is_summary(message):
                assert text_of_summary(message)
                assert count_tokens([message]) <= max_tokens / 4
    assert any(map(is_summary, shown)) == (max_tokens >= 200)


@pytest.mark.slow
def test_without_a_function_the_newest_lines_are_kept():
    manager = SummarizingManager(6, 2, max_tokens=600)
    for count in range(1, 101):
        shown = manager.apply(said(count))
        assert count_tokens(shown) <= 600
    lines = text_of_summary(summary_in(shown)).splitlines()
    numbers = [int(line.split()[-1]) for line in lines]
    assert numbers == list(range(numbers[0], numbers[-1] + 1))
    assert len(numbers) > 5
    assert shown[1].content == f"message {numbers[-1] + 1}"


def test_nothing_is_asked_where_only_system_messages_are_too_long():
    asked = []
    manager = SummarizingManager(6, 2, lambda given: asked.append(given) or "short", max_tokens=300)
    [summary, *_] = SummarizingManager(6, 2, big).apply(said(7))
    rules = Message.system("rule " * 400)
    shown = manager.apply([rules, summary])
    assert shown[0] is rules
    assert text_of_summary(summary_in(shown)).startswith("word word")
    assert asked == []
