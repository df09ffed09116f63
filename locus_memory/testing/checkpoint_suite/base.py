"""The base of all parts of the checkpointer suite: fixtures, states and checks."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, ClassVar, Final

import pytest
import pytest_asyncio

from locus_memory.checkpoint.base import BaseCheckpointer
from locus_memory.checkpoint.chain import DeltaCheckpointer
from locus_memory.testing.fakes import FakeClock

__all__ = ["CheckpointerSuite", "Open", "turns", "verify"]

Open = Callable[..., Any]
"""`await open()` returns another checkpointer on the same data; it accepts options."""

_DICTS: Final[dict[str, Any]] = {"state_type": None}


class CheckpointerSuite:
    """The fixtures of a suite; see `locus_memory.testing.CheckpointerConformance`."""

    pytestmark: ClassVar[list[pytest.MarkDecorator]] = [pytest.mark.asyncio]

    def make_checkpointer(
        self, clock: FakeClock, tmp_path: Path, **options: Any
    ) -> DeltaCheckpointer:
        """Return a checkpointer on the data in `tmp_path`, empty at first.

        Called twice with one `tmp_path`, it returns two that share their data, like two
        processes. `options` are those of `DeltaCheckpointer`, except for `clock`.
        """
        raise NotImplementedError

    @pytest.fixture
    def clock(self) -> FakeClock:
        """The clock passed to `make_checkpointer`."""
        return FakeClock()

    @pytest_asyncio.fixture
    async def open_another(self, clock: FakeClock, tmp_path: Path) -> AsyncIterator[Open]:
        """Opens further checkpointers on the same data, closed with the test."""
        async with AsyncExitStack() as stack:

            async def open_another(**options: Any) -> DeltaCheckpointer:
                made = self.make_checkpointer(clock, tmp_path, **{**_DICTS, **options})
                return await stack.enter_async_context(made)

            yield open_another

    @pytest_asyncio.fixture
    async def checkpointer(self, open_another: Open) -> DeltaCheckpointer:
        """A fresh checkpointer of plain dicts."""
        return await open_another()  # type: ignore[no-any-return] # the fixture's own function

    @pytest_asyncio.fixture
    async def other(self, checkpointer: DeltaCheckpointer, open_another: Open) -> DeltaCheckpointer:
        """A second checkpointer on the same data, like that of another process."""
        if not checkpointer.capabilities.persistent_checkpoint_ids:
            pytest.skip(f"{type(checkpointer).__name__} does not outlive its process")
        return await open_another()  # type: ignore[no-any-return] # the fixture's own function


def turns(count: int) -> dict[str, Any]:
    """Return the state of a conversation after this many turns."""
    messages = [
        {"role": role, "content": f"{role} says {index} " + "lorem ipsum " * 5}
        for index in range(count)
        for role in ("user", "assistant")
    ]
    return {"messages": messages, "turn": count}


async def verify(checkpointer: BaseCheckpointer, thread_id: str, expected: dict[str, Any]) -> None:
    """Assert that a thread holds exactly these states by id, oldest first, all loadable."""
    newest_first = list(reversed(expected))
    assert await checkpointer.list_checkpoints(thread_id, len(expected) + 5) == newest_first
    for checkpoint_id, state in expected.items():
        assert await checkpointer.load(thread_id, checkpoint_id) == state
    latest = expected[newest_first[0]] if expected else None
    assert await checkpointer.load(thread_id) == latest
    assert await checkpointer.exists(thread_id) is bool(expected)
