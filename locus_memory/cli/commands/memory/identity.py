"""The commands `identity`, `identity add` and `identity remove`, and the command `notes`."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from locus_memory.cli.lazy import subcommands
from locus_memory.cli.options.common import Limit
from locus_memory.cli.options.memories import (
    DEFAULT_PREFIX,
    AsOf,
    At,
    Origin,
    Prefix,
    UserOption,
    moments,
)
from locus_memory.cli.options.session import Session
from locus_memory.cli.printing.tables import Cell, print_table
from locus_memory.inspection.memories import for_user, scoped_manager
from locus_memory.inspection.names import parse_namespace
from locus_memory.inspection.text import snippet, visible, visible_name

if TYPE_CHECKING:
    from rich.console import Console

    from locus_memory.backends.base import Backend

__all__ = ["commands", "list_notes"]

_ID = 8
_DAY = 10
_SUMMARY = 240


def show_identity(
    session: Session,
    *,
    user: UserOption = None,
    prefix: Prefix = DEFAULT_PREFIX,
) -> None:
    """Show the sentences that a person fixed for a user.

    They are memories that are always in the model's context, and no model
    changes them.
    """
    session.show(partial(_show, user=user, prefix=prefix), _render)


async def _show(backend: Backend, *, user: str | None, prefix: str) -> dict[str, Any]:
    identity = await scoped_manager(backend.store, parse_namespace(prefix), user).identity.read()
    return {"user": user, "overrides": list(map(asdict, identity.overrides))}


def _render(console: Console, *, document: dict[str, Any]) -> None:
    rows: list[list[Cell]] = [
        [each["id"][:_ID], visible(each["text"]), each["created_at"][:_DAY]]
        for each in document["overrides"]
    ]
    empty = f"nothing is fixed{for_user(document['user'])}"
    print_table(console, ["id", "*text", "since"], rows, empty=empty)


def add_override(
    session: Session,
    text: Annotated[
        str, typer.Argument(metavar="TEXT", help="Sentence, such as 'Always answer in English.'")
    ],
    *,
    user: UserOption = None,
    prefix: Prefix = DEFAULT_PREFIX,
) -> None:
    """Fix a sentence of at most 300 characters that is always in the model's context.

    It is a memory, see `memories`. What no longer fits is refused.
    """
    session.show(
        partial(_add, text=text, user=user, prefix=prefix), partial(_say, what="fixed"), create=True
    )


async def _add(backend: Backend, *, text: str, user: str | None, prefix: str) -> dict[str, Any]:
    added = await scoped_manager(backend.store, parse_namespace(prefix), user).identity.add(text)
    return {"user": user, **asdict(added)}


def remove_override(
    session: Session,
    override_id: Annotated[
        str, typer.Argument(metavar="ID", help="Id of the sentence, or its beginning.")
    ],
    *,
    user: UserOption = None,
    prefix: Prefix = DEFAULT_PREFIX,
) -> None:
    """Retire a fixed sentence; `undo` brings it back."""
    session.show(
        partial(_remove, override_id=override_id, user=user, prefix=prefix),
        partial(_say, what="removed"),
    )


async def _remove(
    backend: Backend, *, override_id: str, user: str | None, prefix: str
) -> dict[str, Any]:
    removed = await scoped_manager(backend.store, parse_namespace(prefix), user).identity.remove(
        override_id
    )
    return {"user": user, **asdict(removed)}


def _say(console: Console, *, document: dict[str, Any], what: str) -> None:
    line = f"{what} {document['id'][:_ID]}: {visible(document['text'])}"
    console.out(line, highlight=False)


def list_notes(
    session: Session,
    *,
    user: UserOption = None,
    origin: Annotated[
        Origin | None, typer.Option("--origin", help="Only notes with this origin.")
    ] = None,
    as_of: AsOf = None,
    at: At = None,
    limit: Limit = 20,
    prefix: Prefix = DEFAULT_PREFIX,
) -> None:
    """List the notes of a user's sessions, the newest first."""
    work = partial(_notes, user=user, origin=origin, limit=limit, prefix=prefix)
    session.show(partial(work, as_of=as_of, at=at), _render_notes)


async def _notes(
    backend: Backend,
    *,
    user: str | None,
    origin: Origin | None,
    limit: int,
    prefix: str,
    as_of: str | None,
    at: str | None,
) -> dict[str, Any]:
    origins, then = None if origin is None else [origin.value], moments(as_of, at)
    manager = scoped_manager(backend.store, parse_namespace(prefix), user)
    found = await manager.episodes(limit, origins=origins, **then)
    return {"user": user, "episodes": [each.to_value() for each in found]}


def _render_notes(console: Console, *, document: dict[str, Any]) -> None:
    rows: list[list[Cell]] = [
        [
            each["ended_at"][:_DAY],
            visible_name(each["session_id"]),
            snippet(_told(each), _SUMMARY),
            f"{each['salience']:.2f}",
        ]
        for each in document["episodes"]
    ]
    empty = f"no notes{for_user(document['user'])}"
    print_table(console, ["day", "thread", "*notes", ">salience"], rows, empty=empty)


def _told(session: dict[str, Any]) -> str:
    """Return the notes of a session."""
    return " ".join(note["text"] for note in session["notes"])


commands = subcommands("identity", show_identity, {"add": add_override, "remove": remove_override})
