"""Redis on several servers: a cluster with replicas, and a primary that sentinels watch."""

from __future__ import annotations

import time
from contextlib import ExitStack, contextmanager

from redis import Redis
from redis.exceptions import RedisError

from locus_memory.testing.servers import RedisServer

NODE_TIMEOUT = 1000
"""Milliseconds of silence after which a server is taken for dead."""

SLOTS = 16384
SERVICE = "mymaster"

_PAUSE = 0.02


class SentinelServer(RedisServer):
    """A sentinel that watches one primary.

    Args:
        primary: The port of the primary.
    """

    def __init__(self, primary):
        super().__init__()
        self.primary = primary

    def _command(self):
        file = self.folder / "sentinel.conf"
        if not file.exists():
            file.write_text(
                f"port {self.port}\nbind 127.0.0.1\ndir {self.folder}\n"
                f"sentinel monitor {SERVICE} 127.0.0.1 {self.primary} 2\n"
                f"sentinel down-after-milliseconds {SERVICE} {NODE_TIMEOUT}\n"
                f"sentinel failover-timeout {SERVICE} 3000\n"
            )
        return (str(self._program()), str(file), "--sentinel")


def until(holds):
    """Wait until something holds; a server that does not answer yet is asked again."""
    while True:
        try:
            if holds():
                return
        except RedisError:
            pass
        time.sleep(_PAUSE)


class Cluster:
    """Three primaries with a replica each.

    Attributes:
        primaries: The servers that have slots at first.
        replicas: Their replicas, in the same order.
    """

    def __init__(self, primaries, replicas):
        self.primaries = primaries
        self.replicas = replicas

    @property
    def url(self):
        hosts = ",".join(f"127.0.0.1:{server.port}" for server in self.primaries)
        return f"redis+cluster://{hosts}"

    def join(self):
        bounds = [SLOTS * place // 3 for place in range(4)]
        for place, server in enumerate(self.primaries):
            ask(server, "CLUSTER ADDSLOTSRANGE", bounds[place], bounds[place + 1] - 1)
            ask(server, "CLUSTER SET-CONFIG-EPOCH", place + 1)
        first, *others = [*self.primaries, *self.replicas]
        for server in others:
            ask(server, "CLUSTER MEET", "127.0.0.1", first.port)
        until(lambda: all(self._knows(server, 6) for server in (first, *others)))
        for primary, replica in zip(self.primaries, self.replicas, strict=True):
            ask(replica, "CLUSTER REPLICATE", name_of_node(primary))
        until(lambda: all(map(is_followed, self.primaries)))
        until(lambda: all(self._is_whole(server) for server in (first, *others)))

    def _knows(self, server, count):
        return facts(server, "CLUSTER INFO")["cluster_known_nodes"] == str(count)

    def _is_whole(self, server):
        found = facts(server, "CLUSTER INFO")
        roles = [row[2] for row in ask(server, "CLUSTER SLOTS")]
        return found["cluster_state"] == "ok" and len(roles) == 3

    def owner(self, slot):
        """Return the server that has a slot."""
        rows = ask(self.primaries[0], "CLUSTER SLOTS")
        port = next(row[2][1] for row in rows if row[0] <= slot <= row[1])
        return next(each for each in self.primaries if each.port == port)

    def move(self, slot, source, target):
        """Move a slot key by key, as `redis-cli --cluster reshard` does."""
        source_name, target_name = name_of_node(source), name_of_node(target)
        ask(target, "CLUSTER SETSLOT", slot, "IMPORTING", source_name)
        ask(source, "CLUSTER SETSLOT", slot, "MIGRATING", target_name)
        with Redis.from_url(source.url) as client:
            while keys := client.execute_command("CLUSTER GETKEYSINSLOT", slot, 10):
                where = ("127.0.0.1", target.port, "", 0, 5000, "KEYS")
                client.execute_command("MIGRATE", *where, *keys)
        for server in (target, source):
            ask(server, "CLUSTER SETSLOT", slot, "NODE", target_name)


@contextmanager
def cluster(kind=RedisServer):
    """Start a cluster of six servers."""
    with ExitStack() as stack:
        settings = {
            "cluster_enabled": "yes",
            "cluster_node_timeout": NODE_TIMEOUT,
            "cluster_require_full_coverage": "no",
            "repl_diskless_sync_delay": 0,
        }
        servers = [stack.enter_context(kind(**settings)) for _ in range(6)]
        made = Cluster(servers[:3], servers[3:])
        made.join()
        yield made


class Watched:
    """A primary with two replicas, watched by three sentinels."""

    def __init__(self, servers, sentinels):
        self.servers = servers
        self.sentinels = sentinels

    @property
    def url(self):
        hosts = ",".join(f"127.0.0.1:{server.port}" for server in self.sentinels)
        return f"redis+sentinel://{hosts}/{SERVICE}"

    def join(self):
        until(lambda: all(self._follows(server) for server in self.servers[1:]))
        until(lambda: all(map(self._knows, self.sentinels)))

    def _follows(self, server):
        return facts(server, "INFO", "replication")["master_link_status"] == "up"

    def _knows(self, sentinel):
        listed = ask(sentinel, "SENTINEL MASTER", SERVICE)
        pairs = (
            listed
            if isinstance(listed, dict)
            else dict(zip(listed[::2], listed[1::2], strict=True))
        )
        found = {text(name): text(value) for name, value in pairs.items()}
        return found["num-slaves"] == "2" and found["num-other-sentinels"] == "2"


@contextmanager
def watched():
    """Start three servers and three sentinels."""
    with ExitStack() as stack:
        settings = {"repl_diskless_sync_delay": 0}
        servers = [stack.enter_context(RedisServer(**settings)) for _ in range(3)]
        port = servers[0].port
        for server in servers[1:]:
            ask(server, "REPLICAOF", "127.0.0.1", port)
        sentinels = [stack.enter_context(SentinelServer(port)) for _ in range(3)]
        made = Watched(servers, sentinels)
        made.join()
        yield made


def ask(server, *command):
    """Return the answer of a server to one command."""
    with Redis.from_url(server.url) as client:
        return client.execute_command(*command)


def facts(server, *command):
    """Return what a server tells of itself."""
    found = ask(server, *command)
    return {text(name): text(value) for name, value in found.items()}


def text(part):
    return part.decode() if isinstance(part, bytes) else str(part)


def name_of_node(server):
    return text(ask(server, "CLUSTER MYID"))


def is_followed(server):
    """Whether a replica of the server has all that was written."""
    found = facts(server, "INFO", "replication")
    return "online" in found.get("slave0", "")
