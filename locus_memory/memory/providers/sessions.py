"""The sessions of a provider that are not over yet, and the moment when they are."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from locus_memory._internal.cancellation import kept
from locus_memory.memory.providers.base import BaseMemoryProvider
from locus_memory.memory.providers.hooks import call_hook, has_hook

__all__ = ["OpenSessions"]

_MOST: Final = 1_000
"""How many sessions are open at once; the oldest one is over when there is one more."""


@dataclass(frozen=True, slots=True)
class _Session:
    provider: Any
    messages: Sequence[Any]
    timer: asyncio.TimerHandle


class OpenSessions:
    """The latest messages of each session, until the provider is told that it is over.

    A session is over when it was quiet for a while, and when `close` is called. A message later
    opens it again.

    Args:
        quiet: The seconds without a turn after which a session is over.
        seconds: How long a provider may take to be told.
    """

    def __init__(self, quiet: float, seconds: float) -> None:
        self._quiet = quiet
        self._seconds = seconds
        self._open: OrderedDict[tuple[str | None, str], _Session] = OrderedDict()
        self._ending: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        return len(self._open)

    def note(self, key: tuple[str | None, str], provider: Any, messages: Sequence[Any]) -> None:
        """Keep the messages of a session after a turn.

        Args:
            key: The user and the thread.
            provider: The provider of that user.
            messages: All messages of the session.
        """
        if not messages or not has_hook(provider, "on_session_end", BaseMemoryProvider):
            return
        self._forget(key)
        timer = asyncio.get_running_loop().call_later(self._quiet, self._begin_end, key)
        self._open[key] = _Session(provider, messages, timer)
        if len(self._open) > _MOST:
            self._begin_end(next(iter(self._open)))

    async def close(self) -> None:
        """Tell the providers that all sessions are over, and wait for them."""
        for key in list(self._open):
            self._begin_end(key)
        if self._ending:
            await asyncio.wait(set(self._ending))

    def _begin_end(self, key: tuple[str | None, str]) -> None:
        session = self._forget(key)
        if session is not None:
            task = kept(self._end(session))
            self._ending.add(task)
            task.add_done_callback(self._ending.discard)

    async def _end(self, session: _Session) -> None:
        await call_hook(
            "on_session_end",
            lambda: session.provider.on_session_end(session.messages),
            seconds=self._seconds,
        )

    def _forget(self, key: tuple[str | None, str]) -> _Session | None:
        session = self._open.pop(key, None)
        if session is not None:
            session.timer.cancel()
        return session
