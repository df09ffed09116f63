"""Options that the commands on memories share, and the manager they work with."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from locus_memory.cli.options.names import parse_namespace

if TYPE_CHECKING:
    from locus_memory.memory.manager import LLMMemoryManager
    from locus_memory.memory.models import Extractor
    from locus_memory.store.base import BaseStore

__all__ = [
    "DEFAULT_PREFIX",
    "KeyArgument",
    "Kind",
    "Prefix",
    "TypeOption",
    "UserOption",
    "for_user",
    "open_manager",
]

DEFAULT_PREFIX = "locus_memory"

_NO_LIMIT = 2**31
_PATIENCE = 5.0
"""Seconds that somebody who leaves waits for memories to be extracted; later is soon enough."""


class Kind(StrEnum):
    """The types of memories, known without importing them."""

    USER = "user"
    FEEDBACK = "feedback"
    PROJECT = "project"
    REFERENCE = "reference"


UserOption = Annotated[
    str | None,
    typer.Option("--user", metavar="ID", help="Whose memories; without it, those of no user."),
]
TypeOption = Annotated[Kind | None, typer.Option("--type", help="Only memories of this type.")]
Prefix = Annotated[
    str,
    typer.Option(
        "--namespace",
        "-n",
        metavar="NAMESPACE",
        help="Where the agent's manager keeps memories.",
    ),
]
KeyArgument = Annotated[str, typer.Argument(metavar="KEY", help="The memory's key.")]


def open_manager(
    store: BaseStore,
    prefix: str,
    extractor: Extractor | Callable[..., Any] | None = None,
) -> LLMMemoryManager:
    """Return a manager of the memories at a namespace, as `--namespace` names it.

    It lets go of nothing to make room: how many memories there may be is for the application
    that owns them to say. It extracts in the background: drain it.
    """
    # Help must be quick.
    from locus_memory.memory.manager import LLMMemoryManager  # noqa: PLC0415
    from locus_memory.memory.options import ExtractionOptions  # noqa: PLC0415

    return LLMMemoryManager(
        store,
        extract_fn=extractor,
        namespace_prefix=parse_namespace(prefix),
        max_memories=_NO_LIMIT,
        history_limit=_NO_LIMIT,
        extraction=ExtractionOptions(extract_mode="background", drain_timeout=_PATIENCE),
    )


def for_user(user: str | None) -> str:
    """Return how a message ends that tells of a user's memories."""
    return "" if user is None else f" for user {user!r}"
