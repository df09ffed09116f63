"""The namespaces on the server, and the scripts that run on one, some or all of them.

The registry is one sorted set of the paths of all namespaces. On a single server, the scripts that
write items keep it up to date. On a cluster it is on another server than most items. There a
namespace is registered before its first item is written, and once more afterwards, each time with a
new mark. A namespace that was found empty is removed from the registry only if it still has the
mark it had before the check.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from itertools import chain, groupby
from operator import attrgetter
from typing import Any, Final, NamedTuple

from locus_memory.backends.redis.connection import lost_keys
from locus_memory.backends.redis.connection.connection import RedisConnection, tag
from locus_memory.backends.redis.items.items import Operation, moment, rows
from locus_memory.backends.redis.lua import Call, script
from locus_memory.errors import (
    BackendError,
    BackendWriteError,
    InvalidArgumentError,
    VersionConflictError,
)
from locus_memory.events import emit
from locus_memory.store.encoding import decode_namespace, encode_namespace, namespace_upper_bound
from locus_memory.store.item import Namespace

__all__ = ["PAGE", "Gone", "Space", "Spaces", "named"]

PAGE: Final = 1000
"""How many elements a script reads at once."""

_kind = attrgetter("kind")

_REMEDY: Final = (
    "restore a backup; or read what is left with get() or scan(), clear_namespace() it and write "
    "it again"
)

_CLEARED: Final = 5000
_CALLS: Final = 200

_MOST_STEPS: Final = 1000
"""How often the postings of a namespace are merged after one batch."""

_MOST: Final = 20_000
_MOST_VECTORS: Final = 2000
_MOST_NUMBERS: Final = 200_000
_MOST_SPACES: Final = 10_000
_MOST_TEXT: Final = 32 * 2**20
"""The limits of a batch: the server does nothing else while it writes one, for about a second."""


class Space(NamedTuple):
    """A namespace, encoded, and the base of its keys."""

    namespace: Namespace
    path: bytes
    base: bytes


def named(spaces: Iterable[Space]) -> AbstractContextManager[None]:
    """Name the namespace, which is one of these, where a key of it is lost."""
    return lost_keys.named(
        ((f"namespace {space.namespace!r}", [space.base]) for space in spaces), _REMEDY
    )


Gone = Iterable[tuple[Space, bytes]]
"""Keys that an index has although their items do not exist."""


class Spaces:
    """The namespaces of a store.

    Args:
        connection: The connection to the server.
        clock: Returns seconds since the epoch; `None`: the server's clock.
    """

    def __init__(
        self, connection: RedisConnection, clock: Callable[[], float] | None = None
    ) -> None:
        self.connection = connection
        self._clock = clock
        self._registry = connection.key("namespaces")
        # A name in braces has the same slot as the name itself.
        self._marks = b"{%s}:marks" % self._registry

    @property
    def is_cluster(self) -> bool:
        """Whether namespaces are on several servers; known once the connection is open."""
        return self.connection.features.cluster

    def now(self) -> str:
        """Return the present moment, in the format of scripts; empty: the server's."""
        return "" if self._clock is None else moment(self._clock())

    def space(self, namespace: Namespace) -> Space:
        """Return a namespace, encoded."""
        path = encode_namespace(namespace).encode()
        return Space(namespace, path, self.connection.key("store", tag(path)))

    def item_name(self, space: Space, key: bytes) -> bytes:
        """Return the key of an item's hash."""
        return space.base + b":i:" + key.replace(b"\0", b"\xff")

    def groups(self, spaces: Sequence[Space], most: int | None = None) -> list[list[Space]]:
        """Return the namespaces in groups of at most `most` that one script may read."""
        size = 1 if self.is_cluster else most or max(len(spaces), 1)
        return [list(spaces[start : start + size]) for start in range(0, len(spaces), size)]

    async def run_each(
        self, calls: Sequence[Call], spaces: Iterable[Space], *, again: bool = True
    ) -> list[Any]:
        """Return the replies of scripts, with one round trip for many of them.

        Args:
            calls: The scripts to run.
            spaces: Their namespaces.
            again: Whether they may run twice without harm.

        Raises:
            BackendCorruptError: A key of a namespace is lost, among others.
        """
        answers: list[Any] = []
        with named(spaces):
            for start in range(0, len(calls), _CALLS):
                some = calls[start : start + _CALLS]
                answers += await self.connection.execute_many(some, again=again)
        return answers

    async def write(self, operations: Sequence[Operation]) -> list[int]:
        """Run all the operations or none; on a cluster, this holds for each namespace.

        Args:
            operations: The operations.

        Returns:
            A put's new version, or 1 or 0 for a delete, in order.

        Raises:
            VersionConflictError: One `if_version` does not hold.
            InvalidArgumentError: There are too many operations.
        """
        if not operations:
            return []
        _check_size(operations)
        await self.connection.open()
        places: dict[Namespace | None, list[int]] = {}
        for place, operation in enumerate(operations):
            place_of = operation.kind.namespace if self.is_cluster else None
            places.setdefault(place_of, []).append(place)
        results = [0] * len(operations)
        for mine in places.values():
            answers, unmerged = await self._register_and_write([operations[n] for n in mine])
            await self._merge(unmerged)
            for place, answer in zip(mine, answers, strict=True):
                results[place] = answer
        return results

    async def _register_and_write(
        self, operations: Sequence[Operation]
    ) -> tuple[list[int], list[Space]]:
        """Write what one script writes; return the results and the namespaces to merge.

        On a cluster, the registry is on another server. A new namespace is registered first, so
        that a crash leaves no unlisted item, and again afterwards, since another process may have
        unregistered it in between.
        """
        written = await self._write(operations)
        if written is None:
            path = self.space(operations[0].kind.namespace).path
            await self._register(path)
            written = await self._write(operations, registered=True)
            await self._register(path)
        return written or ([], [])

    async def _register(self, path: bytes) -> None:
        """Register a namespace of a cluster, with a new mark."""
        keys = [self._registry, self._marks]
        await self.connection.run(script("register"), keys, [path, secrets.token_bytes(8)])

    async def _write(
        self, operations: Sequence[Operation], *, registered: bool = False
    ) -> tuple[list[int], list[Space]] | None:
        """Write; `None`: nothing is written, since the namespace is new to a cluster."""
        now = None if self._clock is None else self._clock()
        numbers: dict[Namespace, int] = {}
        given: list[str | bytes] = []
        for kind, group in groupby(operations, _kind):
            mine = [each.arguments for each in group]
            number = numbers.setdefault(kind.namespace, len(numbers) + 1)
            given.append(kind.header(number, now, len(mine)))
            given += chain.from_iterable(mine)
        spaces = [self.space(namespace) for namespace in numbers]
        keys = [space.base for space in spaces]
        if not self.is_cluster:
            keys.append(self._registry)
        args = [
            "" if now is None else moment(now),
            len(spaces),
            int(registered),
            int(self.connection.features.vector_sets),
            *(space.path for space in spaces),
            *given,
        ]
        with named(spaces):
            answer: list[Any] = await self.connection.run(script("write"), keys, args)
        if answer[0] == b"conflict":
            expected, actual, number = map(int, answer[1:])
            lost = operations[number - 1]
            key = lost.arguments[0].decode()
            raise VersionConflictError(expected, actual, lost.kind.namespace, key)
        if answer[0] == b"register":
            return None
        *results, unmerged = answer
        return results, [spaces[number - 1] for number in unmerged]

    async def _merge(self, spaces: Sequence[Space]) -> None:
        """Merge the postings that a large batch left, whose writes are done in any case."""
        left = list(spaces)
        try:
            # Other processes may write all the time; they merge as well.
            for _ in range(_MOST_STEPS):
                if not left:
                    break
                answers = await self._purge({space: [] for space in left})
                left = [space for space, answer in zip(left, answers, strict=True) if answer[2]]
        except BackendError as error:
            emit("redis.not_cleaned", error=error, namespaces=len(left))

    async def purge(self, gone: Gone) -> None:
        """Delete index data without an item, and a few items that have expired.

        A read-only server keeps them: searches never return them.
        """
        keys: dict[Space, list[bytes]] = {}
        for space, key in gone:
            keys.setdefault(space, []).append(key)
        if keys:
            await self._clean(keys)

    async def _clean(self, keys: Mapping[Space, Sequence[bytes]]) -> list[Space]:
        """Purge unless the server is read-only; return the namespaces that are empty now."""
        try:
            answers = await self._purge(keys)
        except BackendWriteError as error:
            emit("redis.not_cleaned", error=error, namespaces=len(keys))
            return []
        return [space for space, (left, *_) in zip(keys, answers, strict=True) if left == 0]

    async def tidy(self, spaces: Sequence[Space]) -> bool:
        """Delete all expired items; returns whether the server could be written."""
        try:
            await self.purge_expired(spaces)
        except BackendWriteError as error:
            emit("redis.not_cleaned", error=error, namespaces=len(spaces))
            return False
        return True

    async def searched(
        self,
        name: str,
        targets: Sequence[Space],
        most: int,
        width: int,
        args: Callable[[Sequence[Space]], Sequence[Any]],
    ) -> list[Sequence[Any]]:
        """Return the row of each namespace from a search of all, once none has expired items.

        Args:
            name: The script. A row begins with whether the namespace has expired items.
            targets: The namespaces.
            most: How many of them one call searches.
            width: The length of a row.
            args: Returns the arguments after the moment for the namespaces of one call.
        """
        groups = self.groups(targets, most)
        while True:
            now = self.now()
            calls = [
                script(name).call([s.base for s in each], [now, *args(each)]) for each in groups
            ]
            answers = await self.run_each(calls, targets)
            found = [row for answer in answers for row in rows(answer, width)]
            expired = [space for space, row in zip(targets, found, strict=True) if row[0]]
            if not expired or not await self.tidy(expired):
                return found

    async def purge_expired(self, spaces: Iterable[Space], *, merge: bool = False) -> None:
        """Delete all expired items.

        Args:
            spaces: The namespaces.
            merge: Delete the words of deleted items from the text index too.

        Raises:
            BackendError: The server is read-only, among others.
        """
        keys: dict[Space, list[bytes]] = {space: [] for space in spaces}
        while keys:
            answers = await self._purge(keys, merge=merge)
            keys = {
                space: []
                for space, (_, expired, unmerged) in zip(keys, answers, strict=True)
                if expired or (merge and unmerged)
            }

    async def _purge(
        self, keys: Mapping[Space, Sequence[bytes]], *, merge: bool = False
    ) -> list[Any]:
        now = self.now()
        calls = [
            script("purge").call(
                self.keys_of(space), [now, space.path, PAGE // 2, int(merge), *mine]
            )
            for space, mine in keys.items()
        ]
        return await self.run_each(calls, keys)

    def keys_of(self, space: Space) -> list[bytes]:
        """Return the keys of a script that may empty a namespace."""
        return [space.base] if self.is_cluster else [space.base, self._registry]

    async def clear(self, spaces: Sequence[Space]) -> int:
        """Delete all items; return how many of them were not expired."""
        count, left = 0, list(spaces)
        while left:
            now = self.now()
            calls = [
                script("clear").call(self.keys_of(space), [now, space.path, _CLEARED])
                for space in left
            ]
            answers = await self.run_each(calls, left, again=False)
            count += sum(answer[0] for answer in answers)
            left = [space for space, answer in zip(left, answers, strict=True) if answer[1] > 0]
        return count

    async def within(self, namespace: Namespace, *, recursive: bool) -> list[Space]:
        """Return the namespace, or the registered ones among it and its descendants."""
        space = self.space(namespace)
        await self.connection.open()
        if not recursive:
            return [space]
        low, high = space.path, namespace_upper_bound(namespace)
        found: list[Space] = []
        while page := await self.registered(low, high):
            found += page
            low = page[-1].path + b"\x00"
        return found

    async def registered(self, low: bytes, high: str | None) -> list[Space]:
        """Return a page of the registered namespaces from `low` up to, but without, `high`."""
        start = b"[" + low if low else b"-"
        stop = b"+" if high is None else b"(" + high.encode()
        command = ("ZRANGEBYLEX", self._registry, start, stop, "LIMIT", 0, PAGE)
        paths: list[bytes] = await self.connection.execute(*command, again=True)
        return [self.space(decode_namespace(path.decode())) for path in paths]

    async def holding(self, spaces: Sequence[Space]) -> list[Space]:
        """Return the namespaces that hold an item; deletes the remains of the others."""
        marks: Sequence[bytes | None] = [None] * len(spaces)
        if self.is_cluster and spaces:
            paths = [space.path for space in spaces]
            marks = await self.connection.execute("HMGET", self._marks, *paths, again=True)
        mark_of = dict(zip(spaces, marks, strict=True))
        holding, left = await self._look(spaces)
        emptied = await self._clean(left) if left else []
        for space in emptied if self.is_cluster else []:
            args = [space.path, mark_of[space] or b""]
            await self.connection.run(script("forget"), [self._registry, self._marks], args)
        return holding

    async def _look(
        self, spaces: Sequence[Space]
    ) -> tuple[list[Space], dict[Space, Sequence[bytes]]]:
        """Return the namespaces that hold an item, and those to clean with their missing keys."""
        groups, now = self.groups(spaces), self.now()
        calls = [script("holds").call([s.base for s in group], [now]) for group in groups]
        holding: list[Space] = []
        left: dict[Space, Sequence[bytes]] = {}
        for group, answer in zip(groups, await self.run_each(calls, spaces), strict=True):
            for space, holds, gone in zip(group, answer[::2], answer[1::2], strict=True):
                if holds:
                    holding.append(space)
                if gone or not holds:
                    left[space] = gone
        return holding, left


def _check_size(operations: Sequence[Operation]) -> None:
    vectors = [size for each in operations if (size := each.dimension)]
    namespaces = {kind.namespace for kind, _ in groupby(operations, _kind)}
    sizes = (
        (len(operations), _MOST, "operations"),
        (len(namespaces), _MOST_SPACES, "namespaces"),
        (sum(each.text_size for each in operations), _MOST_TEXT, "bytes of words to index"),
        (len(vectors), _MOST_VECTORS, "embeddings"),
        (sum(vectors), _MOST_NUMBERS, "numbers in all its embeddings"),
    )
    for size, most, what in sizes:
        if size > most and len(operations) > 1:
            raise InvalidArgumentError(
                f"redis: a batch has at most {most:,} {what}, not {size:,}; write several batches"
            )
