"""The course of an import from another framework's database."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from locus_memory.cli.printing.progress import one_bar
from locus_memory.cli.printing.tables import Cell, print_table
from locus_memory.inspection.errors import CommandError
from locus_memory.inspection.names import format_namespace
from locus_memory.inspection.text import number, visible_name

if TYPE_CHECKING:
    from rich.console import Console

    from locus_memory.backends.base import Backend
    from locus_memory.cli.options.session import Session

__all__ = ["Asked", "Importer", "Show", "import_from"]

SourceT = TypeVar("SourceT")

Show = Callable[[str, int], None]
"""Shows the progress: the name of the present thread, session or namespace, and a number."""


@dataclass(frozen=True, slots=True)
class Asked:
    """The options of the command.

    Attributes:
        where: The database to import from; empty: none.
        files: The files to import.
        thread: Only this thread or session; `None`: all.
        embedder: The name of the embedder of the target.
        user: The user of memories.
        prefix: The namespace of memories.
        trust: Whether a person vouches for memories.
    """

    where: str = ""
    files: Sequence[str] = ()
    thread: str | None = None
    embedder: str | None = None
    user: str | None = None
    prefix: str = ""
    trust: bool = False


@dataclass(frozen=True, slots=True)
class Importer(Generic[SourceT]):
    """An import from a database, ready to run.

    Attributes:
        listed: The name of the results, in the JSON document and in errors: `threads`.
        source: Opens the database, and raises an error if it is none of this framework.
        copy: Copies everything; returns a value with the attributes of `columns` for each.
        columns: The heading of each attribute in the table, `>` for numbers, without those that
            the table leaves out.
        sums: The numbers of which the JSON document has sums.
        faults: For a number that must be 0, the sentence that tells of it, with `{}` for it.
        only: The name that the results were restricted to.
    """

    listed: str
    source: AbstractAsyncContextManager[SourceT]
    copy: Callable[[SourceT, Backend, Show], Awaitable[Sequence[Any]]]
    columns: Mapping[str, str]
    sums: Sequence[str]
    faults: Mapping[str, str] = field(default_factory=dict[str, str])
    only: str | None = None


def import_from(session: Session, importer: Importer[Any]) -> None:
    """Copy what a database has, and print what is there now.

    Args:
        session: The target.
        importer: The import.

    Raises:
        ConfigurationError: The database is none of this framework; nothing was written.
        Interrupted: The user interrupted the command.
        CommandError: Something was not copied.
    """
    with session.continued("copied"):
        done = session.copy(importer.source, partial(_copied, importer, quiet=session.as_json))
    session.answer(_summary(importer, done), partial(_render, importer=importer, done=done))
    for name, told in importer.faults.items():
        if count := sum(getattr(each, name) for each in done):
            raise CommandError(told.format(number(count)), answered=True)


async def _copied(
    importer: Importer[SourceT], source: SourceT, backend: Backend, *, quiet: bool
) -> Sequence[Any]:
    with one_bar("import", quiet=quiet) as show:

        def tell(name: str, completed: int) -> None:
            show(description=visible_name(name)[:60], completed=completed)

        done = await importer.copy(source, backend, tell)
    if not done:
        kind, only = importer.listed, importer.only
        raise CommandError(f"no {kind} there" if only is None else f"no {kind[:-1]} {only!r} there")
    return done


def _summary(importer: Importer[Any], done: Sequence[Any]) -> dict[str, Any]:
    sums = {name: sum(getattr(each, name) for each in done) for name in importer.sums}
    return {importer.listed: [asdict(each) for each in done], **sums}


def _render(console: Console, importer: Importer[Any], done: Sequence[Any]) -> None:
    rows = [[_cell(getattr(each, name)) for name in importer.columns] for each in done]
    print_table(console, list(importer.columns.values()), rows)


def _cell(value: Any) -> Cell:
    if value is None:
        return "-"
    return format_namespace(value) if isinstance(value, tuple) else value
