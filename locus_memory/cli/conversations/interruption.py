"""The progress of an interrupted import, and the command that continues it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import TYPE_CHECKING

from locus_memory.cli.printing.outcome import Interrupted
from locus_memory.errors import LocusMemoryError
from locus_memory.inspection.errors import CommandError
from locus_memory.inspection.text import number

if TYPE_CHECKING:
    from locus_memory.checkpoint.base import BaseCheckpointer
    from locus_memory.transfer.chats.conversation import Conversation

__all__ = ["Account"]

_PATIENCE = 2.0
"""Seconds to wait for the database to report its turns."""


class Account:
    """The number of imported conversations, and of imported turns of the present one."""

    def __init__(self) -> None:
        self._name = ""
        self._size = self._turns = self._done = 0

    def of(self, conversation: Conversation) -> None:
        """Set the conversation that is imported next."""
        self._name, self._size, self._turns = conversation.thread_id, len(conversation.messages), 0

    def has(self, turns: int) -> None:
        """Set the number of its turns in the database."""
        self._turns = turns

    def is_done(self) -> None:
        """Count the conversation as imported."""
        self._done += 1
        self._size = 0

    @asynccontextmanager
    async def recounted(
        self, checkpointer: BaseCheckpointer, conversation: Conversation
    ) -> AsyncGenerator[None]:
        """Count the turns in the database if the import of a conversation is cancelled.

        The current turn may or may not be saved.
        """
        import asyncio  # noqa: PLC0415 - help must be quick

        from locus_memory.cli.conversations.importer import turns_there  # noqa: PLC0415 - it imports asyncio

        try:
            yield
        except asyncio.CancelledError:
            with suppress(TimeoutError, CommandError, LocusMemoryError):
                async with asyncio.timeout(_PATIENCE):
                    turns = await turns_there(checkpointer, conversation)
                    self.has(turns)
            raise

    @contextmanager
    def told_when_interrupted(self, command: str) -> Generator[None]:
        """Report the progress and the command that continues, if the import is interrupted.

        Args:
            command: The command that continues the import.

        Raises:
            Interrupted: The user interrupted the import.
        """
        import asyncio  # noqa: PLC0415 - help must be quick

        try:
            yield
        except (KeyboardInterrupt, asyncio.CancelledError):
            message = f"{self._told()}; to continue, run: {command}"
            raise Interrupted(message, hint=command) from None

    def _told(self) -> str:
        """Return the progress as text."""
        if not (self._turns or self._done):
            return "interrupted: no turn is imported yet"
        done = "1 conversation is" if self._done == 1 else f"{number(self._done)} conversations are"
        told = [f"{done} complete"] if self._done else []
        if self._size:
            turns, size = number(self._turns), number(self._size)
            told.insert(0, f"{turns} of {size} turns of {self._name!r} are imported")
        return f"interrupted: {', and '.join(told)}"
