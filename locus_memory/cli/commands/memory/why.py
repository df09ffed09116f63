"""The command `why`: what the model saw in the newest runs of a thread."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from locus_memory.cli.options.common import Limit, Offset
from locus_memory.cli.options.memories import DEFAULT_PREFIX, Prefix, UserOption
from locus_memory.cli.options.session import Session
from locus_memory.cli.printing.output import remark
from locus_memory.errors import ConfigurationError
from locus_memory.inspection.memories import open_manager, runs_of, scoped_manager, whose
from locus_memory.inspection.names import find_thread, nearest_thread, parse_namespace
from locus_memory.inspection.text import number, visible, visible_name

if TYPE_CHECKING:
    from rich.console import Console

    from locus_memory.backends.base import Backend
    from locus_memory.memory.manager import LLMMemoryManager

__all__ = ["recall", "why"]

_WITHHELD = "withheld, since it may hold a secret"


def why(
    session: Session,
    thread: Annotated[
        str | None,
        typer.Argument(metavar="THREAD", help="Id of the thread; by default, the newest."),
    ] = None,
    *,
    user: UserOption = None,
    person: Annotated[
        str | None, typer.Option(metavar="ID", help="Another user whose memory the runs saw.")
    ] = None,
    limit: Limit = 1,
    offset: Offset = 0,
    prefix: Prefix = DEFAULT_PREFIX,
) -> None:
    """Show what the model saw of the memory in the newest run of a thread.

    That is the exact text at the end of the system prompt and in front of the message, as the run
    recorded it. Without --user, the user is that of the thread's newest checkpoint. Without THREAD,
    it is the newest run of the user.
    """
    page = slice(offset, offset + limit)
    document, told = session.run(
        partial(_why, thread=thread, user=user, person=person, page=page, prefix=prefix)
    )
    session.answer(document, partial(_render, document=document, told=told))


async def _why(
    backend: Backend,
    *,
    thread: str | None,
    user: str | None,
    person: str | None,
    page: slice,
    prefix: str,
) -> tuple[dict[str, Any], str]:
    """Return the runs, and where others are if there are none."""
    manager = open_manager(backend.store, parse_namespace(prefix))
    owner, seen = await runs_of(backend, manager, thread, user, page.stop)
    found = [(owner, each) for each in seen[page]]
    if person is not None:
        for name in dict.fromkeys(each.thread for each in seen[page]):
            also = await manager.for_user(person).saw(name, limit=page.stop)
            found += [(person, each) for each in also[page]]
    runs = [{"user": who, **asdict(each)} for who, each in found]
    told = "" if runs else await _elsewhere(backend, manager, thread, user)
    return {"user": owner, "thread": thread, "runs": runs}, told


async def _elsewhere(
    backend: Backend, manager: LLMMemoryManager, thread: str | None, user: str | None
) -> str:
    """Return the end of a note that there is no run: the nearest name, or whose runs there are."""
    if thread is None or user is not None:
        return await whose(backend, manager, user)
    # A provider may have no threads.
    with suppress(ConfigurationError):
        if not await backend.checkpointer.exists(await find_thread(backend.checkpointer, thread)):
            return await nearest_thread(backend.checkpointer, thread)
    return await whose(backend, manager, None)


def _render(console: Console, *, document: dict[str, Any], told: str) -> None:
    for run in document["runs"]:
        at = run["at"][:19].replace("T", " ")
        at += "" if run["user"] == document["user"] else f"  {visible_name(run['user'])}"
        at += f"  {visible_name(run['thread'])}" if document["thread"] is None else ""
        lines = [
            f"{at}  {run['items']} lines, {number(run['tokens'])} tokens",
            f"message: {_WITHHELD if run['message'] is None else run['message']}",
            _shown("at the end of the system prompt", run["stable"]),
            _shown("in front of the message", run["tail"]),
        ]
        lines += [f"cut here: {number(run['cut'])} characters"] if run["cut"] else []
        for line in lines:
            console.out(visible(line), highlight=False)
    if not document["runs"]:
        of = document["thread"] and f" of the thread {visible_name(document['thread'])!r}"
        remark(console, f"no record of a run{of or ''}{told}")


def recall(
    session: Session,
    query: Annotated[str, typer.Argument(metavar="QUERY", help="Question, or any words.")],
    *,
    user: UserOption = None,
    person: Annotated[
        str | None, typer.Option(metavar="ID", help="Another user, whose block stands below.")
    ] = None,
    prefix: Prefix = DEFAULT_PREFIX,
) -> None:
    """Show what the model would be shown of the memory for a message.

    Nothing is recorded or counted.
    """
    known = [user] if person is None else [user, person]
    document, told = session.run(partial(_recall, query=query, known=known, prefix=prefix))
    session.answer(document, partial(_render_block, document=document, told=told))


async def _recall(
    backend: Backend, *, query: str, known: list[str | None], prefix: str
) -> tuple[dict[str, Any], str]:
    """Return the block, and whose memories there are if it is empty."""
    labels = parse_namespace(prefix)
    managers = [scoped_manager(backend.store, labels, user) for user in known]
    blocks = [await manager.prefetch(query) for manager in managers]
    block = "\n".join(filter(None, blocks)) or None
    told = "" if block else await whose(backend, open_manager(backend.store, labels), known[0])
    return {"user": known[0], "query": query, "block": block}, told


def _render_block(console: Console, *, document: dict[str, Any], told: str) -> None:
    if document["block"]:
        console.out(visible(document["block"]), highlight=False)
    else:
        remark(console, f"nothing is known{told}")


def _shown(place: str, text: str | None) -> str:
    return f"{place}:\n{text}" if text else f"{place}: nothing"
