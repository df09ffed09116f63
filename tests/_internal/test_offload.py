import asyncio
import threading
from contextvars import ContextVar

import pytest

from locus_memory._internal.offload import in_thread

WHO = ContextVar("WHO", default="nobody")


async def test_it_runs_in_another_thread_with_the_callers_context():
    WHO.set("Ada")

    def work(*args, **kwargs):
        return threading.current_thread(), WHO.get(), args, kwargs

    thread, who, args, kwargs = await in_thread(work, 1, function=2)
    assert thread is not threading.current_thread()
    assert (who, args, kwargs) == ("Ada", (1,), {"function": 2})


async def test_what_it_raises_is_raised():
    for error in (ValueError("no"), KeyError("k"), StopAsyncIteration()):

        def work(error=error):
            raise error

        with pytest.raises(type(error)) as caught:
            await in_thread(work)
        assert caught.value is error


async def test_an_end_of_iteration_does_not_hang():
    with pytest.raises(RuntimeError, match="StopIteration") as caught:
        await asyncio.wait_for(in_thread(next, iter(())), 10)
    assert type(caught.value.__cause__) is StopIteration
