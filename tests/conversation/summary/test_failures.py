"""What a failing `summarize_fn` does to a run: nothing."""

import asyncio

import pytest

from locus_memory.conversation.summary.manager import SummarizingManager
from locus_memory.conversation.summary.text import is_summary, text_of_summary
from locus_memory.conversation.tokens import count_tokens
from locus_memory.events import subscribe
from locus_memory.messages import Message


def said(count, text="message {}"):
    return [Message.user(text.format(number)) for number in range(count)]


def summary_of(shown):
    [text] = [text_of_summary(message) for message in shown if is_summary(message)] or [None]
    return text


@pytest.fixture
def events():
    seen = []
    unsubscribe = subscribe(seen.append)
    yield seen
    unsubscribe()


class TestWhatItRaises:
    async def test_an_end_of_iteration_is_a_failure(self, events):
        answers = iter(["the first"])
        manager = SummarizingManager(4, 2, lambda asked: next(answers))
        messages = said(30)
        for count in range(1, 31):
            shown = await asyncio.wait_for(manager.async_apply(messages[:count]), 10)
        assert "the first" in summary_of(shown)
        assert summary_of(manager.apply(said(9, "other {}"))).startswith("user: other 0")
        assert {event.name for event in events[1:]} == {"conversation.summary_failed"}
        assert "StopIteration" in str(events[1].error)

    @pytest.mark.parametrize("is_async", [True, False])
    async def test_one_of_its_own_is_a_failure(self, is_async, events):
        def plain(asked):
            raise asyncio.CancelledError

        async def later(asked):
            raise asyncio.CancelledError

        function = later if is_async else plain
        messages = said(9)
        shown = await SummarizingManager(4, 2, function).async_apply(messages)
        assert summary_of(shown).startswith("user: message 0")
        assert SummarizingManager(4, 2, function).apply(messages) == shown
        assert [event.name for event in events] == ["conversation.summary_failed"] * 2
        assert {type(event.error) for event in events} == {asyncio.CancelledError}

    async def test_closing_is_a_failure_for_who_waits(self, events):
        started = asyncio.Event()

        async def summarize(asked):
            started.set()
            await asyncio.Event().wait()

        manager = SummarizingManager(4, 2, summarize)
        messages = said(9)
        call = asyncio.create_task(manager.async_apply(messages))
        await started.wait()
        await manager.close()
        shown = await call
        assert summary_of(shown).startswith("user: message 0")
        assert shown[1:] == messages[-2:]
        assert [event.name for event in events] == ["conversation.summary_failed"]

    async def test_who_is_cancelled_is_cancelled(self, events):
        started = asyncio.Event()

        async def summarize(asked):
            started.set()
            await asyncio.Event().wait()

        manager = SummarizingManager(4, 2, summarize)
        call = asyncio.create_task(manager.async_apply(said(9)))
        await started.wait()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0):
                await manager.async_apply(said(9))
        await manager.close()
        assert events == []


class FailsAfterOne:
    def __init__(self, good):
        self.asked = []
        self.good = good

    def __call__(self, asked):
        self.asked.append(asked)
        if len(self.asked) > 1:
            raise RuntimeError("no model")
        return self.good


class TestStandIns:
    """What is shown in place of a summary that failed."""

    @pytest.mark.parametrize("length", [100, 3_000, 4_200, 7_900, 20_000])
    def test_the_last_good_summary_stays_whole(self, length):
        good = f"Allergic to penicillin.\n{'x' * length}"
        manager = SummarizingManager(6, 2, FailsAfterOne(good))
        messages = said(60, "message {} " + "blah " * 60)
        for count in range(7, 61):
            text = summary_of(manager.apply(messages[:count]))
            assert text.startswith(good[:8_000])
            assert len(text) <= 8_000
        if length < 7_000:
            assert "user: message 57" in text.splitlines()[-1]

    def test_it_gets_its_part_of_few_tokens_first(self):
        good = "Allergic to penicillin."
        manager = SummarizingManager(6, 2, FailsAfterOne(good), max_tokens=400)
        messages = said(60, "message {} is short")
        for count in range(7, 61):
            shown = manager.apply(messages[:count])
            assert summary_of(shown).splitlines()[0] == good
            assert count_tokens(shown) <= 400
            assert count_tokens(shown[:1]) <= 100
        last = summary_of(shown).splitlines()[-1]
        assert int(last.split()[2]) >= 54
