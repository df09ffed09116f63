"""The features of a Redis server, detected once by commands that managed servers allow."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from redis import exceptions

from locus_memory.backends.redis.connection.driver_errors import is_busy

__all__ = ["Features", "probe", "texts"]

Ask = Callable[..., Awaitable[Any]]
"""Sends a command to one server, whatever slot its keys are in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Features:
    """The features of a server.

    Attributes:
        vector_sets: Whether it has the commands of vector sets and lets us use them.
        cluster: Whether it is one of a cluster.
        maxmemory_policy: What it does when its memory is full, such as `noeviction`; empty if it
            does not tell.
    """

    vector_sets: bool
    cluster: bool
    maxmemory_policy: str = ""

    @property
    def evicts(self) -> bool:
        """Whether it removes any key to make room, parts of an index or a thread among them."""
        return self.maxmemory_policy.startswith("allkeys-")


async def probe(ask: Ask, key: bytes) -> Features:
    """Return the features of a server; `key` is one that is not there."""
    # Either tells enough; a proxy or an access list may refuse one of them.
    facts = await _facts(ask, ("INFO", "server"), ("HELLO",))
    return Features(
        vector_sets=await _answers(ask, "VSIM", key, "VALUES", 1, "1.0"),
        cluster="cluster" in (facts.get("redis_mode"), facts.get("server_mode"), facts.get("mode")),
        maxmemory_policy=(await _facts(ask, ("INFO", "memory"))).get("maxmemory_policy", ""),
    )


async def _facts(ask: Ask, *sources: Sequence[str]) -> dict[str, str]:
    for command in sources:
        try:
            return texts(await ask(*command))
        except exceptions.ResponseError as error:
            if is_busy(error):
                raise
    return {}


async def _answers(ask: Ask, *command: Any) -> bool:
    try:
        await ask(*command)
    except exceptions.MovedError:
        # Another server has the key: so this one knows the command.
        return True
    except exceptions.ResponseError as error:
        if is_busy(error):
            raise
        return False
    return True


def texts(answer: Any) -> dict[str, str]:
    """Return the facts of an answer: lines, or a flat list."""
    if isinstance(answer, bytes):
        lines = (line.partition(":") for line in answer.decode(errors="replace").splitlines())
        return {name: value for name, _, value in lines}
    pairs = zip(answer[::2], answer[1::2], strict=False)
    return {_text(name): _text(value) for name, value in pairs}


def _text(part: Any) -> str:
    return part.decode(errors="replace") if isinstance(part, bytes) else str(part)
