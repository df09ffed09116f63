"""Checkpoints in Redis: a save is one script, and so is the load of a chain."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import Any, Final, Generic, Unpack

from typing_extensions import override

from locus_memory._internal.options import Keywords, checked
from locus_memory.backends.base import OverConnection
from locus_memory.backends.record_rows import chain_from, check_name
from locus_memory.backends.redis.connection.connection import (
    Client,
    RedisConnection,
)
from locus_memory.backends.redis.connection.lost_keys import named
from locus_memory.backends.redis.lua import script
from locus_memory.backends.redis.options import RedisKeywords, RedisOptions
from locus_memory.backends.redis.records import (
    SHARDS,
    Row,
    ThreadKeys,
    bounds_of,
    pack_head,
    pack_revision,
    read_head,
    read_name,
    read_record,
    registry_key,
    thread_keys,
)
from locus_memory.checkpoint.base import UNSET, CheckpointerCapabilities, StateT, Unset
from locus_memory.checkpoint.chain import CheckpointerOptions, DeltaCheckpointer
from locus_memory.checkpoint.record import Record, RecordHead
from locus_memory.checkpoint.storage import (
    DeltaStorage,
    StaleChainError,
    check_range,
    copied,
)
from locus_memory.errors import (
    CheckpointConflictError,
    ConfigurationError,
)

__all__ = ["RedisCheckpointer", "RedisCheckpointerOptions", "RedisDeltaStorage"]

_REMEDY: Final = "restore a backup, or delete the thread"

_LARGEST: Final = 2**53
"""The largest integer that a score represents exactly."""

_SHORTEST: Final = 0.001
_LONGEST: Final = 10**10
"""Seconds; Redis stores milliseconds since 1970 in 63 bits."""


class RedisDeltaStorage(OverConnection[RedisConnection], DeltaStorage):
    """Records in Redis, safe for many tasks and processes.

    Args:
        url: See `RedisConnection`.
        client: A client, or a connection to share, which the storage does not close.
        options: How to connect, and the prefix of the keys; ignored with a `RedisConnection`.
        ttl: Seconds after its last save until a thread expires as a whole; `None`: never.
        **keywords: The fields of `RedisOptions` by name, in place of `options`.

    Raises:
        ConfigurationError: An option is invalid.
        InvalidArgumentError: `ttl` is not a number.
    """

    _threads_at_once = 100

    @checked
    def __init__(
        self,
        url: str | None = None,
        *,
        client: Client | RedisConnection | None = None,
        options: RedisOptions | None = None,
        ttl: float | None = None,
        **keywords: Unpack[RedisKeywords],
    ) -> None:
        _check_ttl(ttl)
        self.ttl = ttl
        self._lifetime = "" if ttl is None else str(int(ttl * 1000))
        self._connect(RedisConnection, RedisOptions, url, options, keywords, client=client)

    @override
    async def store(
        self,
        record: Record,
        *,
        expected_parent: str | Unset | None = UNSET,
        rebased: Sequence[Record] = (),
    ) -> int:
        keys = self._keys(record.thread_id)
        check, parent = _parent(expected_parent)
        arguments = (keys.member, self._lifetime, record.checkpoint_id, check, parent)
        packed = _packed([record, *rebased])
        answer = await self._run("save", record.thread_id, (*arguments, *packed))
        if isinstance(answer, int):
            return answer
        if answer[0] == b"stale":
            raise StaleChainError
        expected = expected_parent if isinstance(expected_parent, str) else None
        raise _conflict(record.thread_id, expected, answer)

    @override
    async def retrieve(self, thread_id: str, checkpoint_id: str | None = None) -> Record | None:
        rows = await self._read(thread_id, checkpoint_id, "record")
        return check_name(read_record(thread_id, rows[0]), checkpoint_id) if rows else None

    @override
    async def find(self, thread_id: str, checkpoint_id: str | None = None) -> RecordHead | None:
        rows = await self._read(thread_id, checkpoint_id, "head")
        return check_name(read_head(thread_id, rows[0]), checkpoint_id) if rows else None

    @override
    async def retrieve_chain(
        self, thread_id: str, checkpoint_id: str | None = None
    ) -> list[Record]:
        rows = await self._read(thread_id, checkpoint_id, "chain")
        return chain_from([read_record(thread_id, row) for row in rows], checkpoint_id)

    async def _read(self, thread_id: str, checkpoint_id: str | None, wanted: str) -> list[Row]:
        which = ("newest", "") if checkpoint_id is None else ("named", checkpoint_id)
        rows: list[Row] = await self._run("load", thread_id, (*which, wanted))
        return rows

    async def _run(self, name: str, thread_id: str, arguments: Sequence[Any]) -> Any:
        keys = self._keys(thread_id).all
        with named([(f"thread {thread_id!r}", keys)], _REMEDY):
            return await self._connection.run(script(name), keys, arguments)

    @override
    async def list_checkpoints(
        self, thread_id: str, limit: int | None = 10, *, before: int | None = None
    ) -> list[RecordHead]:
        highest = "+inf" if before is None else f"({min(before, _LARGEST)}"
        most = -1 if limit is None else min(limit, _LARGEST)
        rows = await self._run("list", thread_id, (highest, most))
        return [read_head(thread_id, row) for row in rows]

    @override
    async def sequences(self, thread_id: str) -> list[int]:
        return [int(row[1]) for row in await self._run("list", thread_id, ("+inf", -1))]

    @override
    async def delete(
        self,
        thread_id: str,
        revisions: Collection[int] | None = None,
        *,
        rebased: Sequence[Record] = (),
    ) -> int:
        keys = self._keys(thread_id)
        if revisions is None:
            arguments: tuple[Any, ...] = ("all",)
        else:
            removed = [pack_revision(revision) for revision in revisions]
            arguments = (len(removed), *removed, *_packed(rebased))
        answer = await self._run("delete", thread_id, (keys.member, *arguments))
        if not isinstance(answer, int):
            raise StaleChainError
        return answer

    @override
    async def list_threads(
        self, limit: int = 100, *, prefix: str | None = None, after: str | None = None
    ) -> list[str]:
        check_range(prefix, after)
        lowest, highest = bounds_of(prefix, after)
        found: list[bytes] = []
        while len(found) < limit:
            members, frontier = await self._list_members(lowest, highest, limit - len(found))
            found += sorted(members)
            if frontier is None:
                break
            lowest = b"(" + frontier
        return [read_name(member) for member in found[: min(limit, len(found))]]

    async def _list_members(
        self, lowest: bytes, highest: bytes, limit: int
    ) -> tuple[list[bytes], bytes | None]:
        """Return all members up to a frontier, and the frontier; `None`: there are no more."""
        # Twice the average share of a shard.
        share = min(limit, _LARGEST) * 2 // SHARDS + 8
        arguments = (self._connection.key("thread:"), lowest, highest, share)
        registries = [registry_key(self._connection.key(), shard) for shard in range(SHARDS)]
        if (await self._connection.known_features()).cluster:
            calls = [script("list_threads").call([registry], arguments) for registry in registries]
            answers = [each for (each,) in await self._connection.execute_many(calls, again=True)]
        else:
            answers = await self._connection.run(script("list_threads"), registries, arguments)
        frontier: bytes | None = min(
            (last for count, last, _ in answers if count == share), default=None
        )
        members = (member for _, _, there in answers for member in there)
        return [each for each in members if frontier is None or each <= frontier], frontier

    @override
    async def copy_thread(self, source: str, target: str, *, through: int | None = None) -> int:
        highest = "+inf" if through is None else min(through, _LARGEST)
        rows = await self._run("load_all", source, (highest,))
        found = [read_head(source, (rows[n], rows[n + 1], 0)) for n in range(0, len(rows), 3)]
        heads = [copied(head, target, through) for head in found]
        if not heads:
            return 0
        keys = self._keys(target)
        arguments = [keys.member, self._lifetime]
        for place, head in enumerate(heads):
            stored = rows[place * 3 + 1 : place * 3 + 3]
            arguments += [head.checkpoint_id, pack_head(head), *stored]
        answer = await self._run("copy", target, arguments)
        if not isinstance(answer, int):
            raise _conflict(target, None, answer)
        return len(heads)

    @override
    async def _heads_of(self, threads: Sequence[str]) -> list[RecordHead]:
        calls = [script("list").call(self._keys(name).all, ("+inf", -1)) for name in threads]
        owners = ((f"thread {name!r}", self._keys(name).all) for name in threads)
        with named(owners, _REMEDY):
            answers = await self._connection.execute_many(calls, again=True)
        return [read_head(n, row) for n, rows in zip(threads, answers, strict=True) for row in rows]

    def _keys(self, thread_id: str) -> ThreadKeys:
        return thread_keys(self._connection.key(), thread_id)


def _check_ttl(ttl: float | None) -> None:
    if ttl is not None and not _SHORTEST <= ttl <= _LONGEST:
        raise ConfigurationError(f"redis: ttl is seconds above 0 or None, not {ttl}")


def _parent(expected: str | Unset | None) -> tuple[str, str]:
    if isinstance(expected, Unset):
        return "any", ""
    return ("none", "") if expected is None else ("is", expected)


def _packed(records: Iterable[Record]) -> list[bytes]:
    return [part for record in records for part in (pack_head(record), record.payload)]


def _conflict(thread_id: str, expected: str | None, answer: Sequence[Any]) -> Exception:
    _, head, sequence = answer
    newest = read_head(thread_id, (head, sequence, 0)).checkpoint_id if head else None
    return CheckpointConflictError(thread_id, expected, newest)


class RedisCheckpointerOptions(CheckpointerOptions[StateT], Generic[StateT], total=False):
    """The options of `RedisCheckpointer` without those of the connection."""

    ttl: float | None


class RedisCheckpointerKeywords(
    RedisKeywords, CheckpointerOptions[StateT], Generic[StateT], total=False
):
    """The keyword arguments of `RedisCheckpointer` beside its own parameters."""


class RedisCheckpointer(DeltaCheckpointer[StateT]):
    """Checkpoints in Redis or Valkey; the other options are those of `DeltaCheckpointer`.

    Args:
        url: `host`, `host:port`, `host:port/db` or a URL; `localhost:6379` by default.
        client: A client of redis-py, or a `RedisConnection`, to use instead; the checkpointer
            does not close it.
        options: How to connect, and the prefix of the keys; ignored with a `RedisConnection`.
        ttl: Seconds after its last save until a thread expires as a whole; `None`: never.
        **keywords: The options of `DeltaCheckpointer`, and the fields of `RedisOptions` by name,
            in place of `options`.

    Raises:
        ConfigurationError: An option is invalid.
        InvalidArgumentError: `ttl` is not a number.
    """

    @checked
    def __init__(
        self,
        url: str | None = None,
        *,
        client: Client | RedisConnection | None = None,
        options: RedisOptions | None = None,
        ttl: float | None = None,
        **keywords: Unpack[RedisCheckpointerKeywords[StateT]],
    ) -> None:
        named = Keywords(self, keywords)
        options = named.into(RedisOptions, options=options)
        storage = RedisDeltaStorage(url, client=client, options=options, ttl=ttl)
        super().__init__(storage, **named.rest)
        self._expires = ttl is not None

    @property
    @override
    def capabilities(self) -> CheckpointerCapabilities:
        """All capabilities except search over states; `ttl` if threads expire."""
        return replace(super().capabilities, ttl=self._expires)
