"""Options that the memory commands share, and the manager they use."""

from __future__ import annotations

from datetime import UTC
from enum import StrEnum
from typing import Annotated, Any

import typer

__all__ = [
    "DEFAULT_PREFIX",
    "AsOf",
    "At",
    "KeyArgument",
    "Kind",
    "Origin",
    "Prefix",
    "TypeOption",
    "UserOption",
    "moments",
]

DEFAULT_PREFIX = "locus_memory"


class Kind(StrEnum):
    """The memory types, without an import of the memory modules."""

    USER = "user"
    FEEDBACK = "feedback"
    PROJECT = "project"
    REFERENCE = "reference"


class Origin(StrEnum):
    """The origins of memories, likewise."""

    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"
    DOCUMENT = "document"
    IMPORT = "import"
    PERSON = "person"


UserOption = Annotated[
    str | None,
    typer.Option(
        "--user", metavar="ID", help="User of the memories; by default, memories without a user."
    ),
]
TypeOption = Annotated[Kind | None, typer.Option("--type", help="Only memories of this type.")]
Prefix = Annotated[
    str,
    typer.Option(
        "--namespace",
        "-n",
        metavar="NAMESPACE",
        help="Namespace of the agent's memories.",
    ),
]
AsOf = Annotated[
    str | None,
    typer.Option(
        "--as-of", metavar="MOMENT", help="What was known then, such as 2026-03-01T10:00; UTC."
    ),
]
At = Annotated[
    str | None, typer.Option("--at", metavar="MOMENT", help="What was true then; likewise.")
]
KeyArgument = Annotated[str, typer.Argument(metavar="KEY", help="Key of the memory.")]


def moments(as_of: str | None, at: str | None) -> dict[str, Any]:
    """Return the arguments of `--as-of` and `--at`; without an offset, they are in UTC.

    Raises:
        InvalidArgumentError: One is no moment.
    """
    from locus_memory.memory.validity import moment_in  # noqa: PLC0415 - help must be quick

    given = {"as_of": as_of, "at": at}
    return {name: each and moment_in(each, UTC) for name, each in given.items()}
