"""One Redis server or cluster, shared by tasks and event loops; scripts, errors, closing.

redis-py's clients belong to one event loop. So there is one for each loop that calls, made at
its first call, with its own connections, and closed when the loop ends.
"""

from __future__ import annotations

import asyncio
import hashlib
import threading
from collections.abc import Iterable, Sequence
from typing import Any, Final, TypeVar, Unpack

from redis.asyncio import Redis, RedisCluster
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import NoScriptError, RedisClusterException, ResponseError
from typing_extensions import override

from locus_memory._internal.options import Keywords, checked
from locus_memory._internal.resource import warn_unless_closed
from locus_memory.backends.base import SharedConnection
from locus_memory.backends.loops import LONGEST_CLOSE, PerLoop
from locus_memory.backends.redis.connection.address import RedisAddress, parse_redis_url
from locus_memory.backends.redis.connection.cluster import ClusterLink, cluster_of
from locus_memory.backends.redis.connection.driver_errors import (
    FAILURES,
    is_busy,
    is_lost,
    is_readonly,
    translated,
)
from locus_memory.backends.redis.connection.features import Features, probe
from locus_memory.backends.redis.connection.link import Link, greeting, pool_of
from locus_memory.backends.redis.lua import Call, Name, Script
from locus_memory.backends.redis.options import RedisKeywords, RedisOptions
from locus_memory.errors import BackendError, ConfigurationError
from locus_memory.events import emit

__all__ = ["Client", "RedisConnection", "tag"]

Client = Redis | RedisCluster
"""A client of redis-py that the caller has."""

_PAUSES: Final = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6)
"""Seconds to wait between attempts while somebody's script keeps the server busy."""


Command = Call | Sequence[Any]
T = TypeVar("T")


def tag(name: Name) -> bytes:
    """Return the hash tag of a name: keys with it are in one slot of a cluster.

    It is a digest, for the name may hold what ends a tag.
    """
    encoded = name.encode() if isinstance(name, str) else name
    return b"{%s}" % hashlib.blake2b(encoded, digest_size=16).hexdigest().encode()


class RedisConnection(SharedConnection):
    """A Redis server, or a cluster, that any number of tasks and event loops share.

    It connects on first use, and again after the server went away. A command whose connection
    was dead before it was sent is sent over another; one that may have run is sent again only
    if it says that this does no harm. Answers are as the server gives them in protocol 2, texts
    as bytes.

    Args:
        url: `host`, `host:port`, `host:port/db`, or a URL, which the driver reads
            (`redis://`, `rediss://`, `unix://`); `localhost:6379` by default. Several hosts:
            `redis+cluster://host:port,host:port`, or the sentinels of a primary,
            `redis+sentinel://host:port,host:port/service`.
        client: A client to use instead, which is then not closed here, and only works in its
            own event loop. It must not decode responses. Its pool is shared; its own `retry` does
            not apply, so no write is sent twice.
        options: How to connect, and what the keys begin with.
        **keywords: The fields of `RedisOptions` by name, in place of `options`.

    Raises:
        ConfigurationError: An option that cannot work.
    """

    @checked
    def __init__(
        self,
        url: str | None = None,
        *,
        client: Client | None = None,
        options: RedisOptions | None = None,
        **keywords: Unpack[RedisKeywords],
    ) -> None:
        options = Keywords(self, keywords).all_into(RedisOptions, options=options)
        self._prefix = options.key_prefix.encode()
        self._given = client
        address = parse_redis_url(url)
        self._cluster = _is_cluster(client, address)
        self._address, self._options = address, options
        self.place = address.place if client is None else _place_of(client)
        self.pool_size = options.pool_size
        self.plain_hosts = address.plain_hosts if client is None else []
        self._features: Features | None = None
        self._clients: PerLoop[Link] = PerLoop(
            f"redis {self.place}", None if client is None else "pass a url"
        )
        self._lock = threading.Lock()
        if client is None:
            warn_unless_closed(self, f"redis {self.place}", self._clients.is_open)

    @property
    def features(self) -> Features:
        """The features of the server, known once the connection is open.

        Raises:
            BackendError: It was never open.
        """
        if self._features is None:
            raise BackendError(f"redis {self.place}: not connected yet; await open() first")
        return self._features

    async def known_features(self) -> Features:
        """Connect if need be and return what the server is and can do.

        Raises:
            BackendError: See `open`.
        """
        if self._features is None:
            await self.open()
        return self.features

    def key(self, *parts: Name) -> bytes:
        """Return the key of these parts, joined by `:`, after the prefix."""
        encoded = (part.encode() if isinstance(part, str) else part for part in parts)
        return self._prefix + b":".join(encoded)

    async def run(self, script: Script, keys: Sequence[Name] = (), args: Sequence[Any] = ()) -> Any:
        """Run a script and return its answer.

        Args:
            script: What to run.
            keys: All in one slot.
            args: Texts, bytes and numbers.

        Raises:
            BackendError: See `locus_memory.errors`.
        """
        (answer,) = await self._send([script.call(keys, args)], again=script.idempotent)
        return answer

    async def execute(self, *command: Any, again: bool = False) -> Any:
        """Send one command and return its answer.

        Args:
            command: Its name and arguments.
            again: Whether it only reads, so that it does no harm to run it twice, or late.

        Raises:
            BackendError: See `locus_memory.errors`.
        """
        (answer,) = await self._send([command], again=again)
        return answer

    async def execute_many(self, commands: Iterable[Command], *, again: bool = False) -> list[Any]:
        """Send commands and calls of scripts in one round trip and return their answers.

        Each is atomic, all of them are not: others may come in between. On a cluster there is
        one round trip for each server, all at the same moment.

        Args:
            commands: Each as for `execute`, or a script's `call`.
            again: Whether it does no harm to run all of them twice; those that are no scripts
                only read then.

        Raises:
            BackendError: The first that failed; the others may have run.
        """
        listed = list(commands)
        return await self._send(listed, again=again) if listed else []

    @override
    async def open(self) -> None:
        """Connect, and ask what the server can do, now rather than on first use.

        Raises:
            BackendUnavailableError: It cannot be reached.
            ConfigurationError: It refuses the password, the database or the user.
        """
        await self._send((), again=True)

    @override
    async def close(self) -> None:
        """Finish what was asked for and end the connections; calling it again is harmless."""
        await self._clients.close(LONGEST_CLOSE)

    async def _send(self, commands: Sequence[Command], *, again: bool) -> list[Any]:
        """Send commands; again, what the server refuses unread, so that nothing is done twice."""
        pipe = _Pipe(commands, again=again)
        with translated(self.place):
            for pause in _PAUSES:
                try:
                    return await self._attempt(pipe)
                except ResponseError as error:
                    if not is_busy(error):
                        raise
                    emit("redis.busy", error=error, place=self.place)
                await asyncio.sleep(pause)
            return await self._attempt(pipe)

    async def _attempt(self, pipe: _Pipe) -> list[Any]:
        link = await self._here()
        try:
            return await pipe.send(link)
        except FAILURES as error:
            if self._clients.is_closed:
                raise self._clients.refusal() from error
            if is_lost(error) or is_readonly(error):
                # What one connection met, the others will: the server is another by now.
                await link.forget_connections()
            if not (pipe.again and is_lost(error)):
                raise
        return await pipe.send(link)

    async def _here(self) -> Link:
        """Return the link of the running loop, connected once at least."""
        return self._clients.here() or await self._clients.opened(self._open_link)

    async def _open_link(self) -> Link:
        known = self._features.cluster if self._features is not None else None
        is_cluster = bool(known if self._cluster is None else self._cluster)
        link = await self._started(is_cluster=is_cluster)
        if self.features.cluster and self._cluster is None and not is_cluster:
            await link.close()
            link = await self._started(is_cluster=True)
        return link

    async def _started(self, *, is_cluster: bool) -> Link:
        link = self._make(is_cluster=is_cluster)
        try:
            await link.start()
            if self._features is None:
                self._learn(await probe(link.ask_one, self.key("probe")))
        except BaseException:
            await link.close()
            raise
        return link

    def _make(self, *, is_cluster: bool) -> Link:
        """Return a new link, which never sends a command twice on its own."""
        if isinstance(self._given, RedisCluster):
            return ClusterLink(self._given, self.place, self._options, owned=False)
        if self._given is not None:
            return Link(self._given.connection_pool, self.place, self._options, owned=False)
        # Each of several hosts has its part of the time; the primary of sentinels is one more.
        hosts = len(self._address.hosts) + (self._address.kind == "sentinel")
        limit = self._options.connect_timeout / hosts
        options: dict[str, Any] = {
            "protocol": 2,
            "retry": Retry(NoBackoff(), 0),
            "socket_timeout": None,
            "socket_connect_timeout": limit,
            "max_connections": self.pool_size,
            "driver_info": None,
            "redis_connect_func": greeting(limit),
        }
        if not is_cluster:
            pool = pool_of(self._address, options)
            return Link(pool, self.place, self._options, owned=True)
        try:
            client = cluster_of(self._address, options)
        except RedisClusterException as error:
            raise ConfigurationError(f"redis {self.place}: is a cluster: {error}") from None
        return ClusterLink(client, self.place, self._options, owned=True)

    def _learn(self, features: Features) -> None:
        with self._lock:
            is_news, self._features = self._features is None, features
        if is_news and features.evicts:
            policy = features.maxmemory_policy
            emit("redis.evicts", place=self.place, maxmemory_policy=policy)


def _place_of(client: object) -> str:
    if not isinstance(client, Redis | RedisCluster):
        raise ConfigurationError(
            "redis: client is a redis.asyncio.Redis or RedisCluster, not a "
            f"{type(client).__module__}.{type(client).__qualname__}"
        )
    if client.get_encoder().decode_responses:
        raise ConfigurationError(
            "redis: the client decodes responses; make it with decode_responses=False"
        )
    if isinstance(client, RedisCluster):
        return ",".join(node.name for node in client.startup_nodes)
    options = client.connection_pool.connection_kwargs
    return str(options.get("path") or f"{options.get('host')}:{options.get('port')}")


def _is_cluster(client: Client | None, address: RedisAddress) -> bool | None:
    """Return whether it is a cluster; `None`: the server is asked."""
    if client is not None:
        return isinstance(client, RedisCluster)
    return None if address.kind == "server" else address.kind == "cluster"


class _Pipe:
    """Commands that are sent at once; again, those only that the server refused unread."""

    def __init__(self, commands: Sequence[Command], *, again: bool) -> None:
        self._writes = any(isinstance(each, Call) and not each.script.is_read for each in commands)
        self.again = again
        self._commands = commands
        self._is_read = again and not self._writes
        self._left: Sequence[int] = range(len(commands))
        self._answers: dict[int, Any] = dict.fromkeys(self._left)

    async def send(self, link: Link) -> list[Any]:
        """Send what has no answer yet; return all answers, or raise the first refusal."""
        places = self._left
        # A script that the server does not know is sent whole.
        for form in ("command", "full_command"):
            asked = (self._commands[place] for place in places)
            commands = [getattr(each, form) if isinstance(each, Call) else each for each in asked]
            if commands:
                found = await link.ask(commands, is_read=self._is_read, confirmed=self._writes)
                self._answers.update(zip(places, found, strict=True))
            places = [n for n in places if isinstance(self._answers[n], NoScriptError)]
        self._left = [place for place in self._left if is_busy(self._answers[place])]
        for answer in self._answers.values():
            if isinstance(answer, Exception):
                raise answer
        return [*self._answers.values()]
