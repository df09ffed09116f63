"""The options of a connection to Redis, in one frozen value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypedDict

from locus_memory._internal.options import check_fields, check_ranges
from locus_memory.errors import ConfigurationError

__all__ = ["RedisKeywords", "RedisOptions"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RedisOptions:
    """How to connect to a Redis server or cluster, and what the keys begin with.

    Attributes:
        key_prefix: What every key begins with; stores and checkpointers with different prefixes
            never meet.
        pool_size: How many connections each event loop may have, to each server of a cluster.
            Commands that come at one moment share them, and wait when all are busy.
        connect_timeout: Seconds to wait for a connection to be made, the password accepted; each of
            several hosts has its part of them.
        command_timeout: Seconds to wait for an answer; `None`: for ever.
        acquire_timeout: Seconds to wait for a connection to be free.
        wait_replicas: How many replicas must have a write before it is acknowledged (`WAIT`);
            0: none, so a failover may lose the last moments.
        wait_timeout: Seconds to wait for them; then the write raises
            `BackendUnavailableError`, though it is done.

    Raises:
        ConfigurationError: An option that cannot work.
    """

    key_prefix: str = "locus:"
    pool_size: int = 16
    connect_timeout: float = 10.0
    command_timeout: float | None = 60.0
    acquire_timeout: float = 30.0
    wait_replicas: int = 0
    wait_timeout: float = 5.0

    def __post_init__(self) -> None:
        check_fields(self)
        prefix = self.key_prefix
        if not prefix or "{" in prefix or "}" in prefix:
            raise ConfigurationError(
                "redis: key_prefix is a text without '{' and '}', and not empty"
            )
        seconds = ("connect_timeout", "command_timeout", "acquire_timeout", "wait_timeout")
        check_ranges("redis", self, {"pool_size": 1, "wait_replicas": 0}, positive=seconds)


class RedisKeywords(TypedDict, total=False):
    """The same options by name."""

    key_prefix: str
    pool_size: int
    connect_timeout: float
    command_timeout: float | None
    acquire_timeout: float
    wait_replicas: int
    wait_timeout: float
