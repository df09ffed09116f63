"""The commands `tree`, `cat` and `find` on `memory://` resources, and the command `presets`."""

from __future__ import annotations

from dataclasses import asdict
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from locus_memory.cli.options.common import Limit
from locus_memory.cli.options.session import Session, WithJson
from locus_memory.cli.printing.tables import Cell, print_table
from locus_memory.inspection.memories import for_user
from locus_memory.inspection.names import parse_namespace
from locus_memory.inspection.text import number, snippet, visible

if TYPE_CHECKING:
    from rich.console import Console

    from locus_memory.backends.base import Backend
    from locus_memory.resources.tree import MemoryTree

__all__ = ["cat", "find", "list_presets", "tree"]

_ROOT = "memory://"
_PREFIX = "memory"
_DIGITS = 3

Where = Annotated[str, typer.Argument(metavar="URI", help="URI of a folder.")]
User = Annotated[
    str | None,
    typer.Option("--user", metavar="ID", help="User of the tree; by default, that of no user."),
]
Prefix = Annotated[
    str,
    typer.Option("--namespace", "-n", metavar="NAMESPACE", help="Namespace of the trees."),
]


class ReadLevel(StrEnum):
    """The levels, without an import of the resources."""

    ABSTRACT = "abstract"
    OVERVIEW = "overview"
    DETAIL = "detail"


def tree(
    session: Session,
    uri: Where = _ROOT,
    *,
    depth: Annotated[int, typer.Option("--depth", metavar="N", min=1, help="Levels to show.")] = 2,
    after: Annotated[
        str | None, typer.Option("--after", metavar="URI", help="Start after this entry.")
    ] = None,
    limit: Limit = 100,
    user: User = None,
    prefix: Prefix = _PREFIX,
) -> None:
    """List what is below a folder of resources: folders first, then by name."""

    async def work(backend: Backend) -> list[dict[str, Any]]:
        async with _opened(backend, prefix, user) as opened:
            found = await opened.tree(uri, depth, limit=limit + 1, after=after)
            return [asdict(each) for each in found.entries]

    found = session.run(work)
    page = found[:limit]
    cursor = page[-1]["uri"] if page and len(found) > limit else None
    document = {"uri": uri, "user": user, "entries": page, "next": cursor}
    session.answer(document, partial(_render_tree, entries=page, user=user))
    if cursor is not None:
        session.tell_more(None, after=cursor)


def _opened(backend: Backend, prefix: str, user: str | None) -> MemoryTree:
    from locus_memory.resources.tree import MemoryTree  # noqa: PLC0415 - help must be quick

    return MemoryTree(backend.store, prefix=parse_namespace(prefix), user_id=user)


def _render_tree(output: Console, *, entries: list[dict[str, Any]], user: str | None) -> None:
    rows: list[list[Cell]] = [
        [each["uri"], "" if each["size"] is None else number(each["size"])] for each in entries
    ]
    print_table(output, ["*uri", ">bytes"], rows, empty=f"no resources{for_user(user)}")


def cat(
    session: Session,
    uri: Annotated[str, typer.Argument(metavar="URI", help="URI of an entry or a folder.")],
    *,
    level: Annotated[
        ReadLevel, typer.Option("--level", help="How much to read; a folder has no detail.")
    ] = ReadLevel.DETAIL,
    version: Annotated[
        int | None, typer.Option("--version", metavar="N", min=1, help="A past version.")
    ] = None,
    user: User = None,
    prefix: Prefix = _PREFIX,
) -> None:
    """Print the text of a resource, or its abstract or overview."""

    async def work(backend: Backend) -> dict[str, Any]:
        async with _opened(backend, prefix, user) as opened:
            return asdict(await opened.read(uri, level.value, version=version))

    found = session.run(work)
    session.answer(found, partial(_render_text, text=found["data"]))


def _render_text(output: Console, *, text: str) -> None:
    output.out(visible(text), highlight=False)


def find(
    session: Session,
    query: Annotated[str, typer.Argument(metavar="QUERY", help="Question, or any words.")],
    *,
    under: Annotated[
        str, typer.Option("--under", metavar="URI", help="Only entries here and below.")
    ] = _ROOT,
    limit: Limit = 8,
    user: User = None,
    prefix: Prefix = _PREFIX,
) -> None:
    """Find resources by their words, the best first."""

    async def work(backend: Backend) -> list[dict[str, Any]]:
        async with _opened(backend, prefix, user) as opened:
            return [asdict(each) for each in (await opened.find(query, under, limit)).hits]

    hits = session.run(work)
    document = {"query": query, "uri": under, "user": user, "hits": hits}
    session.answer(document, partial(_render_hits, hits=hits))


def _render_hits(output: Console, *, hits: list[dict[str, Any]]) -> None:
    rows: list[list[Cell]] = [
        [f"{each['score']:.{_DIGITS}f}", each["uri"], snippet(each["snippet"] or "")]
        for each in hits
    ]
    print_table(output, [">score", "uri", "*text"], rows, empty="nothing found")


def list_presets(session: WithJson) -> None:
    """List the presets of pyproject.toml and of ~/.config/locus_memory/config.toml.

    `--url @NAME` uses one. A secret is shown as the variable that holds it.
    """
    from locus_memory.presets import list_presets as read  # noqa: PLC0415 - help must be quick

    found = [asdict(each) for each in read()]
    session.answer({"presets": found}, partial(_render_presets, found=found))


def _render_presets(output: Console, *, found: list[dict[str, Any]]) -> None:
    rows: list[list[Cell]] = [
        [f"@{each['name']}", visible(each["url"]), ", ".join(each["options"]), each["source"]]
        for each in found
    ]
    empty = "no presets: write [tool.locus_memory.presets] into pyproject.toml"
    print_table(output, ["name", "*url", "options", "file"], rows, empty=empty)
