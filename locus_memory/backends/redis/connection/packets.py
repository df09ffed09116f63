"""The bytes of commands, the answers to them, and the confirmation by replicas."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from redis.exceptions import RedisError, ResponseError

__all__ = ["UnconfirmedError", "Wait", "packed", "read_answers"]


class UnconfirmedError(RedisError):
    """A write that is done, but that too few replicas have."""


@dataclass(frozen=True, slots=True)
class Wait:
    """The command `WAIT`: it answers when so many replicas have what was written before it.

    It is sent over the connection of the write, in the same packet.

    Source: https://redis.io/docs/latest/commands/wait/

    Attributes:
        replicas: How many replicas.
        timeout: Seconds to wait for them.
        data: The command as it is sent.
    """

    replicas: int
    timeout: float
    data: bytes = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "data", packed(self.command))

    @property
    def command(self) -> tuple[Any, ...]:
        """Its name and arguments."""
        return ("WAIT", self.replicas, max(1, round(self.timeout * 1000)))

    def check(self, confirmed: Any, answers: Sequence[Any]) -> None:
        """Refuse to acknowledge what too few replicas have.

        Args:
            confirmed: The answer to `WAIT`.
            answers: Those of the commands before it; refusals of all wrote nothing.

        Raises:
            UnconfirmedError: Too few have it.
        """
        if all(isinstance(answer, Exception) for answer in answers):
            return
        if isinstance(confirmed, Exception):
            raise confirmed
        if confirmed < self.replicas:
            raise UnconfirmedError(
                f"the write is done, but within {self.timeout:g} s {confirmed} of "
                f"{self.replicas} replicas confirmed it, so a failover may lose it"
            )


def packed(command: Sequence[Any]) -> bytes:
    """Return a command as it is sent; the driver's own way grows with the square of its parts."""
    # As with the driver, the name may be of two words.
    words = (*str(command[0]).split(), *command[1:])
    parts = [b"*%d\r\n" % len(words)]
    for part in words:
        data = part if isinstance(part, bytes) else str(part).encode()
        parts.append(b"$%d\r\n%b\r\n" % (len(data), data))
    return b"".join(parts)


async def read_answers(connection: Any, answers: list[Any], count: int) -> None:
    """Append what the server answers until there are so many.

    Cancelled, it can be called again: the driver keeps what has arrived of an answer.
    """
    while len(answers) < count:
        try:
            answers.append(await connection.read_response(disconnect_on_error=False))
        except ResponseError as error:
            answers.append(error)
