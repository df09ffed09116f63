"""RediSearch: its indexes of the library's items, and queries with complete results.

There is one index of texts, and one of vectors for each dimension, both over the hashes of the
items themselves: deleted and expired items leave them in the same step.
"""

from __future__ import annotations

import asyncio
import math
import secrets
from contextlib import suppress
from itertools import chain, repeat
from typing import Any, Final

from locus_memory.backends.redis.connection.connection import RedisConnection
from locus_memory.backends.redis.connection.driver_errors import (
    is_made_already,
    is_no_index,
    is_over_limit,
)
from locus_memory.backends.redis.search.commands import (
    Question,
    Terms,
    Vector,
    index_command,
    rest_of,
)
from locus_memory.backends.redis.search.replies import Row, is_indexing, read_page
from locus_memory.errors import BackendError, BackendUnavailableError, BackendWriteError
from locus_memory.events import emit

__all__ = ["RediSearch"]

_ALL_IN_ONE: Final = 8192
"""The most rows that are requested at once; more are streamed."""

_PAUSES: Final = (0.002, 0.005, 0.01, 0.02, 0.05)
"""Seconds between checks of an index that is not complete; the last one repeats."""

_NOBODY: Final = "none"


class RediSearch:
    """The indexes of one key prefix.

    Args:
        connection: The connection to the server.
    """

    def __init__(self, connection: RedisConnection) -> None:
        self._connection = connection
        self._scans = connection.key("scans")
        self._complete: set[bytes] = set()

    def index(self, dimension: int = 0) -> bytes:
        """Return the name of the index of vectors of a dimension; 0: of the index of texts."""
        return self._connection.key("search", f"v{dimension}" if dimension else "text")

    async def make(self, dimension: int = 0, *, scan: bool) -> None:
        """Create an index unless it exists.

        Args:
            dimension: The dimension of its vectors; 0: it is an index of texts.
            scan: Whether items for it may exist already.

        Raises:
            BackendError: The server cannot create it, or must not.
        """
        prefix = self._connection.key("store:{")
        try:
            command = index_command(self.index(dimension), prefix, dimension, scan=scan)
            await self._connection.execute(*command)
        except BackendError as error:
            if not is_made_already(error):
                raise

    async def find(self, question: Question, most: int) -> list[Row]:
        """Return the `most` best items of a query, the best first.

        Among texts with the same score, the one indexed last comes last.

        Raises:
            BackendUnavailableError: The index is not complete in time, among others.
        """
        name = self.index(question.dimension)
        if most <= _ALL_IN_ONE:
            try:
                command = question.at_once(name, most)
                return question.read(await self._ask(question.dimension, command))
            except BackendError as error:
                if not is_over_limit(error):
                    raise
        command = question.whole(name, most)
        page = read_page(await self._ask(question.dimension, command), question.field)
        found = page.rows
        while page.cursor:
            answer = await self._connection.execute(*rest_of(name, page.cursor))
            page = read_page(answer, question.field)
            found += page.rows
        return sorted(found, key=lambda row: row.number, reverse=question.is_descending)[:most]

    async def _ask(self, dimension: int, command: tuple[Any, ...]) -> Any:
        """Query an index once it is complete; creates it again if it was deleted."""
        loop = asyncio.get_running_loop()
        patience = self._connection.command_timeout
        end = math.inf if patience is None else loop.time() + patience
        for pause in chain((0.0,), _PAUSES, repeat(_PAUSES[-1])):
            try:
                is_whole, answer = await self._ask_once(self.index(dimension), command)
                if is_whole:
                    return answer
            except BackendError as error:
                if not is_no_index(error):
                    raise
                emit("redis.index_made_again", error=error, place=self._connection.place)
                await self._make_again(dimension)
            if loop.time() >= end:
                break
            await asyncio.sleep(pause)
        raise BackendUnavailableError(
            f"redis {self._connection.place}: RediSearch still indexes existing items"
        )

    async def _ask_once(self, name: bytes, command: tuple[Any, ...]) -> tuple[bool, Any]:
        """Return whether an index was complete before the query, and the reply.

        `FT.INFO` reports this, but counts every vector to do so. So it runs once, and again when
        another process notes that it creates an index again.
        """
        if name in self._complete:
            commands = [("HEXISTS", self._scans, name), command]
            is_made, answer = await self._connection.execute_many(commands, again=True)
            if is_made:
                self._complete.discard(name)
            return not is_made, answer
        commands = [("FT.INFO", name), command]
        info, answer = await self._connection.execute_many(commands, again=True)
        if is_indexing(info):
            return False, answer
        with suppress(BackendWriteError):
            await self._connection.execute("HDEL", self._scans, name)
        self._complete.add(name)
        return True, answer

    async def _make_again(self, dimension: int) -> None:
        name = self.index(dimension)
        self._complete.discard(name)
        await self._connection.execute("HSET", self._scans, name, "1")
        await self.make(dimension, scan=True)
        # A process that checked the index before may have deleted this note as an old one.
        await self._connection.execute("HSET", self._scans, name, "1")

    async def try_texts(self, *, make: bool) -> None:
        """Run each form of text query that a search uses.

        Args:
            make: Whether to create the index; else it may be missing.

        Raises:
            BackendError: The server cannot run them, or must not.
        """
        if make:
            await self.make(scan=False)
        await self._try(Terms(_NOBODY, ["x"]), self.index())

    async def try_vectors(self, *, make: bool) -> None:
        """Run each form of vector query that a search uses.

        Args:
            make: Whether to create an index for the queries, which is deleted again.

        Raises:
            BackendError: The server cannot run them, or must not.
        """
        question = Vector.any_of(_NOBODY, 1)
        if not make:
            await self._try(question, self.index(1))
            return
        name = self._connection.key("search", "trial", secrets.token_hex(8))
        await self._connection.execute(*index_command(name, name, 1, scan=False))
        try:
            await self._try(question, name)
        finally:
            with suppress(BackendError):
                await self._connection.execute("FT.DROPINDEX", name)

    async def _try(self, question: Question, name: bytes) -> None:
        for command in (question.at_once(name, 1), question.whole(name, 1)):
            try:
                await self._connection.execute(*command)
            except BackendError as error:
                if not is_no_index(error):
                    raise
