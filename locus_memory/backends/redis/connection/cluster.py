"""A cluster: redis-py knows the servers and their slots, and the server to ask is chosen here.

While a slot is moved key by key, a part of its keys is on either server. redis-py then asks the new
one, where a script finds nothing of what is still on its way. A script reads and writes keys that
only it can name, so it must not run on a part of them: here, a command for such a slot waits until
the slot has one server again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Final, cast

from redis.asyncio import RedisCluster
from redis.asyncio.cluster import ClusterNode
from redis.exceptions import (
    AskError,
    ClusterDownError,
    MovedError,
    ResponseError,
    TryAgainError,
)
from typing_extensions import override

from locus_memory.backends.redis.connection.driver import Driver
from locus_memory.backends.redis.connection.packets import Wait, packed, read_answers

__all__ = ["ClusterDriver"]

_KEYED: Final = frozenset(
    {"EXISTS", "GET", "HDEL", "HGET", "HGETALL", "HMGET", "HSET", "SET", "ZRANGEBYLEX"}
)
"""The commands whose first argument is their only key."""

_SCRIPTS: Final = frozenset({"EVAL", "EVALSHA"})

_PAUSE: Final = 0.02
"""Seconds between two attempts while a slot is moved."""

_PATIENCE: Final = 30.0
"""Seconds that a command waits for a slot that is moved."""

_PART: Final = 0.9
"""The part of the time for an answer that may pass with waiting."""

_SPLIT: Final = ("undeclared keys were accessed", "access a non local key")
"""What servers say of a script that needs a key of a slot that is just being moved."""


class ClusterDriver(Driver):
    """A client of a cluster, asked as a `Pool` is; for its arguments see `Driver`."""

    client: RedisCluster

    def __init__(self, client: RedisCluster, **options: Any) -> None:
        super().__init__(client, **options)
        self._failed: str | None = None

    @property
    @override
    def connections(self) -> list[Any]:
        """All that the client has made; nothing public lists them."""
        manager = self.client.nodes_manager
        # A node may be in both, or be two with one name, which count as equal.
        listed: list[Any] = [*manager.nodes_cache.values(), *manager.startup_nodes.values()]
        nodes = {id(node): node for node in listed}.values()
        return [each for node in nodes for each in node._connections]  # noqa: SLF001

    @override
    async def _execute(self, command: Sequence[Any], wait: Wait | None) -> Any:
        if not _is_routed(command):
            return await self.client.execute_command(*command)
        (answer,) = await self._execute_many([command], wait)
        if isinstance(answer, Exception):
            raise answer
        return answer

    @override
    async def _execute_many(
        self, commands: Sequence[Sequence[Any]], wait: Wait | None
    ) -> list[Any]:
        """Send each command to the server that has its slot, those of one server at once."""
        if not all(map(_is_routed, commands)):
            return await super()._execute_many(commands, None)
        answers: list[Any] = [None] * len(commands)
        left, end = list(range(len(commands))), self._end()
        while left:
            found = await self._ask_each([commands[place] for place in left], wait)
            for place, answer in zip(left, found, strict=True):
                answers[place] = answer
            left = [place for place in left if await self._is_elsewhere(answers[place])]
            if left and asyncio.get_running_loop().time() > end:
                raise TryAgainError("the slot of a key is still being moved to another server")
            if any(not isinstance(answers[place], MovedError) for place in left):
                await asyncio.sleep(_PAUSE)
        return answers

    async def _ask_each(self, commands: Sequence[Sequence[Any]], wait: Wait | None) -> list[Any]:
        """Return the answers and refusals of the servers that have the slots, as far as known."""
        await self._know_the_servers()
        nodes: dict[ClusterNode, list[int]] = {}
        for place, command in enumerate(commands):
            nodes.setdefault(self._node_of(command), []).append(place)
        asked = [
            self._ask_node(node, [commands[each] for each in places], wait)
            for node, places in nodes.items()
        ]
        answers: list[Any] = [None] * len(commands)
        for places, found in zip(nodes.values(), await _all_of(asked), strict=True):
            for place, answer in zip(places, found, strict=True):
                answers[place] = answer
        return answers

    def _end(self) -> float:
        """Return the moment until which a slot that is moved is waited for."""
        most = self._command_timeout
        patience = _PATIENCE if most is None else min(_PATIENCE, most * _PART)
        return asyncio.get_running_loop().time() + patience

    async def _know_the_servers(self) -> None:
        """Read which server has which slot, at first and after a server failed."""
        failed, self._failed = self._failed, None
        if failed is not None:
            try:
                await self.client.nodes_manager.initialize(last_failed_node_name=failed)
            except BaseException:
                self._failed = failed
                raise
        await self.client.initialize()

    def _node_of(self, command: Sequence[Any]) -> ClusterNode:
        key = command[1] if command[0] in _KEYED else command[3]
        slot = self.client.keyslot(key)
        return self.client.nodes_manager.get_node_from_slot(slot)

    async def _is_elsewhere(self, answer: object) -> bool:
        """Whether a command was refused because its slot is moved, and is to be sent again."""
        if isinstance(answer, MovedError):
            await self.client.nodes_manager.move_slot(answer)
            return True
        if isinstance(answer, ClusterDownError):
            self._failed = ""
        is_split = isinstance(answer, ResponseError) and any(said in str(answer) for said in _SPLIT)
        return is_split or isinstance(answer, AskError | TryAgainError)

    async def _ask_node(
        self, node: ClusterNode, commands: Sequence[Sequence[Any]], wait: Wait | None
    ) -> list[Any]:
        """Send commands over one connection and return the server's answers and refusals."""
        connection: Any = node.acquire_connection()
        answers: list[Any] = []
        data = b"".join(map(packed, commands))
        count = len(commands) + (wait is not None)
        try:
            await node.disconnect_if_needed(connection)
            await connection.send_packed_command(data if wait is None else data + wait.data)
            await read_answers(connection, answers, count)
        finally:
            if len(answers) < count:
                self._failed = node.name
                await connection.disconnect(nowait=True)
            # While it is released as it is, a connection to be made again is missing to others.
            await node.disconnect_if_needed(connection)
            node.release(connection)
        if wait is not None:
            wait.check(answers.pop(), answers)
        return answers

    @override
    async def _connect(self) -> None:
        await self.client.initialize()

    @override
    async def ask_one(self, *command: Any) -> Any:
        """Ask one server, whatever the command's keys."""
        node = self.client.get_default_node()
        return await self._in_turn(lambda: node.execute_command(*command), is_read=True)

    @override
    async def close(self) -> None:
        """Close the client, unless it is the caller's."""
        if not self.owned:
            return
        await self.client.aclose()
        # After a failure it takes itself for closed, with its sockets open.
        await self.client.nodes_manager.aclose()
        await self.client.nodes_manager.aclose("startup_nodes")

    @override
    def abandon(self) -> None:
        """Do not warn of what was left open, for it is not any more."""
        client: Any = self.client
        client._initialize = True  # noqa: SLF001 - it takes itself for open otherwise


def _is_routed(command: Sequence[Any]) -> bool:
    """Whether the server to ask is chosen here; redis-py chooses it for what no store sends."""
    return command[0] in _KEYED or (command[0] in _SCRIPTS and bool(command[2]))


async def _all_of(asked: Sequence[Any]) -> list[list[Any]]:
    """Return the answers of all servers, or raise the first failure once all have answered."""
    if len(asked) == 1:
        return [await asked[0]]
    found = await asyncio.gather(*asked, return_exceptions=True)
    for each in found:
        if isinstance(each, BaseException):
            raise each
    return cast("list[list[Any]]", found)
