"""What a failing `summarize_fn` does to a run: nothing."""

import asyncio

import pytest

from locus_memory.conversation.summary import SummarizingManager
from locus_memory.conversation.summary_text import is_summary, text_of_summary
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
