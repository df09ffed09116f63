"""Options that the memory commands share, and the manager they use."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from locus_memory.cli.options.names import parse_namespace

if TYPE_CHECKING:
    from locus_memory.memory.manager import LLMMemoryManager
    from locus_memory.memory.models import Extractor
    from locus_memory.memory.options import ExtractMode
    from locus_memory.store.base import BaseStore

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
    "for_user",
    "moments",
    "open_manager",
    "scoped_manager",
]

DEFAULT_PREFIX = "locus_memory"

_NO_LIMIT = 2**31
_PATIENCE = 5.0
"""Seconds to wait for extraction on exit; the jobs that remain stay queued."""


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


def open_manager(
    store: BaseStore,
    prefix: str,
    extractor: Extractor | Callable[..., Any] | None = None,
    *,
    extract_mode: ExtractMode = "background",
    retention: float = 365.0,
    patience: float = _PATIENCE,
) -> LLMMemoryManager:
    """Return a manager of the memories in the namespace that `--namespace` names.

    It drops no past version: that limit is the application's to set. It extracts in the
    background: drain it. On exit it waits for `patience` seconds.
    """
    # Help must be quick.
    from locus_memory.memory.manager import LLMMemoryManager  # noqa: PLC0415

    return LLMMemoryManager(
        store,
        extract_fn=extractor,
        namespace_prefix=parse_namespace(prefix),
        history_limit=_NO_LIMIT,
        extract_mode=extract_mode,
        retention=retention,
        drain_timeout=patience,
    )


def scoped_manager(store: BaseStore, prefix: str, user: str | None) -> LLMMemoryManager:
    """Return a manager of the memories of a user, or of those without a user."""
    manager = open_manager(store, prefix)
    return manager if user is None else manager.for_user(user)


def moments(as_of: str | None, at: str | None) -> dict[str, Any]:
    """Return the arguments of `--as-of` and `--at`; without an offset, they are in UTC.

    Raises:
        InvalidArgumentError: One is no moment.
    """
    from locus_memory.memory.validity import moment_in  # noqa: PLC0415 - help must be quick

    given = {"as_of": as_of, "at": at}
    return {name: each and moment_in(each, UTC) for name, each in given.items()}


def for_user(user: str | None) -> str:
    """Return the end of a message about a user's memories."""
    return "" if user is None else f" for user {user!r}"
