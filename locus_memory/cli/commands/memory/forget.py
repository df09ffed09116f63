"""The command `forget`: erases a memory, memories with some words, or all data of a user."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from locus_memory.cli.options.confirmation import Yes, confirm, refuse_unasked
from locus_memory.cli.options.memories import DEFAULT_PREFIX, Kind, Prefix, TypeOption, UserOption
from locus_memory.cli.options.session import Session
from locus_memory.cli.printing.output import console, remark
from locus_memory.cli.printing.tables import Cell, Cut, print_records, print_table
from locus_memory.inspection.errors import CommandError, UsageError
from locus_memory.inspection.memories import elsewhere, erased, for_user, open_manager, users
from locus_memory.inspection.names import format_namespace, parse_namespace
from locus_memory.inspection.text import compact, snippet, visible_name

if TYPE_CHECKING:
    from rich.console import Console

    from locus_memory.backends.base import Backend
    from locus_memory.memory.forgetting.forget import ForgetReport

__all__ = ["forget"]

_NAMED = 12
_NAME = 60
_TURNS = ("turns",)
"""Namespace of the turns that `import` stores."""

_NO_STORE = "the database has no store: only threads were searched"


@dataclass(frozen=True, slots=True)
class _Request:
    """The arguments of the command."""

    key: str | None
    user: str | None
    query: str | None
    kind: Kind | None
    threads: bool
    prefix: str
    summaries: tuple[str, ...]

    def __post_init__(self) -> None:
        if self.key is None and self.query is None and self.user is None:
            raise UsageError("give KEY, --query, or --user alone for all data of a user")
        if self.key is not None and self.query is not None:
            raise UsageError("give KEY or --query, not both")
        if self.is_user and self.kind is not None:
            raise UsageError("--type needs KEY or --query")

    @property
    def is_user(self) -> bool:
        """Whether the command erases all data of a user."""
        return self.key is None and self.query is None

    @property
    def asks_first(self) -> bool:
        """Whether the command erases more than one named memory."""
        return self.key is None or self.threads

    def question(self) -> str:
        """Return the question before the erasure."""
        if self.is_user:
            return f"erase ALL data of user {self.user!r} permanently?"
        return "erase this permanently?"

    def nothing(self) -> str:
        """Return the error if there is nothing to erase."""
        if self.is_user:
            return f"no data of user {self.user!r}"
        sought = f"{self.key!r}" if self.query is None else f"with the words {self.query!r}"
        return f"no memory {sought}{for_user(self.user)}"

    async def carry_out(self, backend: Backend, *, dry_run: bool) -> ForgetReport:
        """Erase, or report what the erasure would cover."""
        from locus_memory.memory.forgetting.forget import forget as erase  # noqa: PLC0415 - help must be quick

        return await erase(
            backend,
            user_id=self.user,
            key=self.key,
            type=None if self.kind is None else self.kind.value,
            query=self.query,
            prefix=parse_namespace(self.prefix),
            threads=self.threads,
            thread_namespaces=[_TURNS],
            summary_namespaces=[parse_namespace(each) for each in self.summaries],
            dry_run=dry_run,
        )


def forget(
    session: Session,
    key: Annotated[
        str | None,
        typer.Argument(
            metavar="KEY", help="Key of one memory. Without KEY and --query: ALL data of --user."
        ),
    ] = None,
    *,
    user: UserOption = None,
    query: Annotated[
        str | None,
        typer.Option("--query", metavar="WORDS", help="Only memories with all these words."),
    ] = None,
    kind: TypeOption = None,
    threads: Annotated[
        bool, typer.Option("--threads", help="Also erase the whole source threads.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show what would be erased.")
    ] = False,
    yes: Yes = False,
    prefix: Prefix = DEFAULT_PREFIX,
    summaries: Annotated[
        list[str] | None,
        typer.Option(
            "--summaries", metavar="NAMESPACE", help="Further namespace of summaries; repeatable."
        ),
    ] = None,
) -> None:
    """Erase memories permanently, or all data of a user.

    forget KEY --user ada erases one memory of ada.

    forget --user ada erases all data of ada: memories, history, queued messages, items, and
    every thread of ada with all its checkpoints.

    `undo` cannot bring erased data back. The command asks first, except for a single KEY.
    """
    request = _Request(key, user, query, kind, threads, prefix, tuple(summaries or ()))
    must_ask = request.asks_first and not dry_run and not yes
    if must_ask:
        refuse_unasked("pass --yes to erase, or --dry-run to look")
    if dry_run or must_ask:
        plan = session.run(partial(_carry_out, request=request, dry_run=True))
        if dry_run:
            session.answer(plan, partial(_render, document=plan))
            return
        _render(console(stderr=True), document=plan)
        confirm(request.question(), otherwise="nothing was erased")
    report = session.run(partial(_carry_out, request=request, dry_run=False))
    session.answer(report, partial(_render, document=report))


async def _carry_out(backend: Backend, *, request: _Request, dry_run: bool) -> dict[str, Any]:
    """Erase, or return what would be erased, with its contents."""
    report = await request.carry_out(backend, dry_run=dry_run)
    if report.is_empty:
        raise CommandError(request.nothing() + await _hint(backend, request, report))
    return await erased(report, backend.store if dry_run and report.has_store else None)


async def _hint(backend: Backend, request: _Request, report: ForgetReport) -> str:
    """Return a hint if a user has this name or this key, or if one is mistyped."""
    if not report.has_store:
        return f" ({_NO_STORE})"
    manager = open_manager(backend.store, parse_namespace(request.prefix))
    if request.user is None and request.key in await users(backend.store, manager):
        return f"; to erase all data of the user of that name: forget --user {request.key!r}"
    return await elsewhere(backend.store, manager, request.key, request.user)


def _render(console: Console, *, document: dict[str, Any]) -> None:
    verb = "would erase" if document["dry_run"] else "erased"
    counts = [each for each in _counts(document) if each[1]]
    rows: list[list[Cell]] = [[title, count, _names(names)] for title, count, names in counts]
    records: list[list[Cell]] = [[title, count, *names] for title, count, names in counts]
    print_table(console, ["what", f">{verb}", "*which"], rows, records=records)
    if console.is_terminal:
        for title, content in _contents(document):
            console.out(f"  {title}: {snippet(content)}", highlight=False)
    else:
        contents: list[list[Cell]] = [
            ["content", title, Cut(content)] for title, content in _contents(document)
        ]
        print_records(console, contents)
    for thread, others in document["shared"]:
        whose = ", ".join(map(repr, others))
        remark(console, f"thread {thread!r} goes as a whole, with checkpoints of {whose}")
    for thread in document["sources"]:
        remark(
            console,
            f"thread {thread!r} still holds the source messages; --threads erases it too",
        )
    for thread in document["unreadable"]:
        remark(console, f"thread {thread!r} is damaged and stays unchanged")
    for each in document["kept"]:
        remark(console, f"{format_namespace(tuple(each['namespace']))} stays: {each['reason']}")
    if not document["has_store"]:
        remark(console, _NO_STORE)


def _counts(document: dict[str, Any]) -> list[tuple[str, int, list[str]]]:
    """Return each kind of data with its title, its number and its names."""
    memories = [each for each in document["memories"] if each["is_current"]]
    past = [each for each in document["memories"] if each["past"]]
    items = document["items"]
    return [
        ("memories", len(memories), [_memory(each) for each in memories]),
        (
            "past versions",
            sum(len(each["past"]) for each in past),
            [_memory(each) for each in past],
        ),
        ("items", len(items), [_item(each) for each in items]),
        ("queued messages", len(document["jobs"]), sorted(set(document["jobs"]))),
        ("reading marks", len(document["cursors"]), list(document["cursors"])),
        ("threads", len(document["threads"]), list(document["threads"])),
        ("checkpoints", document["checkpoints"], []),
        ("summaries", document["summaries"], []),
        ("use records", document["vitals"], []),
        ("sessions with notes", document["episodes"], []),
        ("turns", document["turns"], []),
        ("log entries", document["log"], []),
    ]


def _memory(memory: dict[str, Any]) -> str:
    return f"{memory['type']} {visible_name(memory['key'])}"


def _item(item: dict[str, Any]) -> str:
    return visible_name(f"{format_namespace(tuple(item['namespace']))} {item['key']}")


def _names(names: list[str]) -> str:
    shown = ", ".join(snippet(visible_name(name), _NAME) for name in names[:_NAMED])
    return f"{shown} and {len(names) - _NAMED} more" if len(names) > _NAMED else shown


def _contents(document: dict[str, Any]) -> list[tuple[str, str]]:
    """Return names and contents of what would be erased, if they were loaded."""
    memories = [
        (_memory(each), content)
        for each in document["memories"]
        for content in each.get("contents", ())
    ]
    items = [(_item(each), compact(each["value"])) for each in document["items"] if "value" in each]
    return memories + items
