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

from locus_memory.backends.redis.connection.address import RedisAddress
from locus_memory.backends.redis.connection.link import Link, UnconfirmedError, make_ready
from locus_memory.backends.redis.options import RedisOptions

__all__ = ["ClusterLink", "cluster_of"]

_UNKEYED: Final = frozenset(
    (
        *("BGREWRITEAOF", "BGSAVE", "CLIENT", "CONFIG", "FT._LIST", "HELLO", "INFO", "PING"),
        *("SCAN", "SCRIPT", "TIME"),
    )
)
"""The commands without a key; of the others but scripts, the first argument is their only key."""

_SCRIPTS: Final = frozenset({"EVAL", "EVALSHA"})

_PAUSE: Final = 0.02
"""Seconds between two attempts while a slot is moved."""

_PATIENCE: Final = 30.0
"""Seconds that a command waits for a slot that is moved."""

_PART: Final = 0.9
"""The part of the time for an answer that may pass with waiting."""

_SPLIT: Final = ("undeclared keys were accessed", "access a non local key")
"""What servers say of a script that needs a key of a slot that is just being moved."""


class ClusterLink(Link):
    """The way to a cluster from one event loop; for the other arguments see `Link`.

    Args:
        client: The client of redis-py.
    """

    def __init__(
        self, client: RedisCluster, place: str, options: RedisOptions, *, owned: bool
    ) -> None:
        self._client = client
        self._failed: str | None = None
        super().__init__(cast("Any", None), place, options, owned=owned)

    @override
    def _most(self) -> int:
        """Return how many connections the driver makes to each server."""
        return min((node.max_connections for node in self._nodes()), default=1)

    def _nodes(self) -> list[Any]:
        manager = self._client.nodes_manager
        # A node may be in both, or be two with one name, which count as equal.
        listed: list[Any] = [*manager.nodes_cache.values(), *manager.startup_nodes.values()]
        return list({id(node): node for node in listed}.values())

    @property
    @override
    def connections(self) -> list[Any]:
        """All that the client has made; nothing public lists them."""
        return [each for node in self._nodes() for each in node._connections]  # noqa: SLF001

    @override
    async def _execute(
        self, commands: Sequence[Sequence[Any]], *, is_read: bool, confirmed: bool
    ) -> list[Any]:
        """Send each command to the server that has its slot, those of one server at once."""
        answers: list[Any] = [None] * len(commands)
        left, end = list(range(len(commands))), self._patience()
        while left:
            asked = [commands[place] for place in left]
            found = await self._ask_each(asked, is_read=is_read, confirmed=confirmed)
            for place, answer in zip(left, found, strict=True):
                answers[place] = answer
            left = [place for place in left if await self._is_elsewhere(answers[place])]
            if left and self._loop.time() > end:
                raise TryAgainError("the slot of a key is still being moved to another server")
            if any(not isinstance(answers[place], MovedError) for place in left):
                await asyncio.sleep(_PAUSE)
        return answers

    async def _ask_each(
        self, commands: Sequence[Sequence[Any]], *, is_read: bool, confirmed: bool
    ) -> list[Any]:
        """Return the answers and refusals of the servers that have the slots, as far as known."""
        await self._know_the_servers()
        nodes: dict[ClusterNode, list[int]] = {}
        for place, command in enumerate(commands):
            nodes.setdefault(self._node_of(command), []).append(place)
        asked = [
            self._ask_node(
                node, [commands[each] for each in places], is_read=is_read, confirmed=confirmed
            )
            for node, places in nodes.items()
        ]
        answers: list[Any] = [None] * len(commands)
        for places, found in zip(nodes.values(), await _all_of(asked), strict=True):
            for place, answer in zip(places, found, strict=True):
                answers[place] = answer
        return answers

    def _patience(self) -> float:
        """Return the moment until which a slot that is moved is waited for."""
        most = self._options.command_timeout
        return self._loop.time() + (_PATIENCE if most is None else min(_PATIENCE, most * _PART))

    async def _know_the_servers(self) -> None:
        """Read which server has which slot, at first and after a server failed."""
        failed, self._failed = self._failed, None
        if failed is not None:
            try:
                await self._client.nodes_manager.initialize(last_failed_node_name=failed)
            except BaseException:
                self._failed = failed
                raise
        await self._client.initialize()

    def _node_of(self, command: Sequence[Any]) -> ClusterNode:
        """Return the server that has the key of a command; any, if it has no key."""
        is_script = command[0] in _SCRIPTS
        if command[0].split()[0] in _UNKEYED or (is_script and not command[2]):
            return self._client.get_default_node()
        slot = self._client.keyslot(command[3] if is_script else command[1])
        return self._client.nodes_manager.get_node_from_slot(slot)

    async def _is_elsewhere(self, answer: object) -> bool:
        """Whether a command was refused because its slot is moved, and is to be sent again."""
        if isinstance(answer, MovedError):
            await self._client.nodes_manager.move_slot(answer)
            return True
        if isinstance(answer, ClusterDownError):
            self._failed = ""
        is_split = isinstance(answer, ResponseError) and any(said in str(answer) for said in _SPLIT)
        return is_split or isinstance(answer, AskError | TryAgainError)

    async def _ask_node(
        self, node: ClusterNode, commands: Sequence[Any], *, is_read: bool, confirmed: bool
    ) -> list[Any]:
        """Send commands over one connection and return the server's answers and refusals."""
        connection: Any = node.acquire_connection()
        try:
            await make_ready(connection)
            return await self._exchange(connection, commands, is_read=is_read, confirmed=confirmed)
        except UnconfirmedError:
            raise
        except BaseException:
            self._failed = node.name
            raise
        finally:
            # While it is released as it is, a connection to be made again is missing to others.
            await node.disconnect_if_needed(connection)
            node.release(connection)

    @override
    async def _connect(self) -> None:
        await self._client.initialize()

    @override
    async def _shut(self) -> None:
        await self._client.aclose()
        # After a failure it takes itself for closed, with its sockets open.
        await self._client.nodes_manager.aclose()
        await self._client.nodes_manager.aclose("startup_nodes")

    @override
    def abandon(self) -> None:
        if self._owned:
            client: Any = self._client
            client._initialize = True  # noqa: SLF001 - it warns that it is open otherwise
        super().abandon()


def cluster_of(address: RedisAddress, options: dict[str, Any]) -> RedisCluster:
    """Return the driver's client of a cluster, no server of which takes for ever to greet.

    Args:
        address: Some of its servers.
        options: The driver's options of the connections.

    Raises:
        RedisClusterException: The url has what a cluster does not.
    """
    _, *others = address.hosts
    options = {**options}
    greet = options.pop("redis_connect_func")
    nodes = [ClusterNode(host, port) for host, port in others]
    client = RedisCluster.from_url(address.urls[0], startup_nodes=nodes, **options)
    manager = client.nodes_manager
    makers: list[Any] = [manager, *manager.startup_nodes.values()]
    for maker in makers:
        maker.connection_kwargs["redis_connect_func"] = greet
    return client


async def _all_of(asked: Sequence[Any]) -> list[list[Any]]:
    """Return the answers of all servers, or raise the first failure once all have answered."""
    found = await asyncio.gather(*asked, return_exceptions=True)
    for each in found:
        if isinstance(each, BaseException):
            raise each
    return cast("list[list[Any]]", found)
