"""The command `retain`: deletes the items and checkpoints that no rule keeps."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from locus_memory.cli.options.common import parse_age, parse_object
from locus_memory.cli.options.confirmation import Yes, confirm, refuse_unasked
from locus_memory.cli.options.session import Session
from locus_memory.cli.printing.output import remark
from locus_memory.cli.printing.tables import Cell, print_table
from locus_memory.inspection.errors import UsageError
from locus_memory.inspection.names import format_namespace, parse_namespace
from locus_memory.inspection.text import number, visible_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from locus_memory.backends.base import Backend
    from locus_memory.retention import RetentionReport, RetentionRule

__all__ = ["retain"]

_NO_RULES = (
    "no rules: give --namespace or --threads with a limit, or write tables "
    "[[tool.locus_memory.retention]] into pyproject.toml"
)


def retain(
    session: Session,
    *,
    namespace: Annotated[
        str | None,
        typer.Option(metavar="NAMESPACE", help="Rule for the items at and below; * is any label."),
    ] = None,
    threads: Annotated[bool, typer.Option("--threads", help="Rule for threads.")] = False,
    metadata: Annotated[
        str | None,
        typer.Option(metavar="JSON", help="Only threads whose newest metadata match this filter."),
    ] = None,
    prefix: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Only threads whose id begins so.")
    ] = None,
    user: Annotated[str | None, typer.Option(metavar="USER", help="Only threads of USER.")] = None,
    keep_last: Annotated[
        int | None,
        typer.Option(metavar="N", min=0, help="Keep N items a namespace, or checkpoints a thread."),
    ] = None,
    older_than: Annotated[
        str | None, typer.Option(metavar="AGE", help="Keep what is younger, such as 30d.")
    ] = None,
    idle_for: Annotated[
        str | None, typer.Option(metavar="AGE", help="Delete threads that are idle for so long.")
    ] = None,
    keep_threads: Annotated[
        int | None, typer.Option(metavar="N", min=0, help="Keep N threads of each user.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show what would be deleted.")
    ] = False,
    yes: Yes = False,
) -> None:
    """Delete the items and checkpoints that no rule keeps.

    The options are one rule. Without any, the rules are those of the configuration file. With two
    limits of a kind, only what is over both is deleted. The command asks first. `compact` frees
    the space.
    """
    table: dict[str, Any] = {
        "namespace": None if namespace is None else list(parse_namespace(namespace)),
        "metadata": parse_object(metadata, "--metadata"),
        "prefix": prefix,
        "user_id": user,
        "keep_last": keep_last,
        "older_than": None if older_than is None else parse_age(older_than),
        "idle_for": None if idle_for is None else parse_age(idle_for),
        "keep_threads": keep_threads,
    }
    work = partial(_retain, rules=_rules(table, threads=threads))
    if not dry_run and not yes:
        refuse_unasked("pass --yes to delete, or --dry-run to look")
        plan = session.run(partial(work, dry_run=True))
        confirm(f"delete {_counts(plan)}?")
    session.show(partial(work, dry_run=dry_run), _render)


def _rules(table: dict[str, Any], *, threads: bool) -> Sequence[RetentionRule]:
    """Return the rule of the options, or else those of the configuration file.

    Raises:
        UsageError: The options are no rule, or two.
    """
    from locus_memory.errors import ConfigurationError  # noqa: PLC0415 - help must be quick
    from locus_memory.presets import retention_tables  # noqa: PLC0415 - the same
    from locus_memory.retention.rules import read_rules  # noqa: PLC0415 - the same

    given = {name: value for name, value in table.items() if value is not None}
    is_rule = threads or "namespace" in given
    if threads and "namespace" in given:
        raise UsageError("--namespace and --threads are two rules: write them into a file")
    if given and not is_rule:
        raise UsageError("a limit belongs to a rule: give --namespace or --threads as well")
    if is_rule:
        try:
            return read_rules([given], "the options")
        except ConfigurationError as error:
            raise UsageError(str(error)) from error
    source, tables = retention_tables()
    if not tables:
        raise UsageError(_NO_RULES)
    return read_rules(tables, f"{source}: retention")


async def _retain(
    backend: Backend, *, rules: Sequence[RetentionRule], dry_run: bool
) -> dict[str, Any]:
    from locus_memory.retention.applying import retain as run  # noqa: PLC0415 - help must be quick

    return _document(await run(backend, rules, dry_run=dry_run))


def _document(report: RetentionReport) -> dict[str, Any]:
    document = asdict(report)
    for place in document["places"]:
        if place["namespace"] is not None:
            place["namespace"] = list(place["namespace"])
    return {**document, "places": list(document["places"])}


def _counts(document: dict[str, Any]) -> str:
    names = ("items", "checkpoints", "threads")
    items, checkpoints, threads = (number(document[name]) for name in names)
    return f"{items} items and {checkpoints} checkpoints, among them {threads} whole threads"


def _render(console: Console, *, document: dict[str, Any]) -> None:
    verb = "would delete" if document["dry_run"] else "deleted"
    rows: list[list[Cell]] = [
        [each["rule"], _name(each), each["deleted"], each["kept"]] for each in document["places"]
    ]
    if rows:
        print_table(console, [">rule", "*namespace or thread", f">{verb}", ">kept"], rows)
    remark(console, f"{verb} {_counts(document)}")
    for each in document["places"]:
        if each["problem"]:
            remark(console, f"thread {each['thread_id']!r} stays unchanged: {each['problem']}")


def _name(place: dict[str, Any]) -> str:
    if place["namespace"] is None:
        return visible_name(place["thread_id"])
    return visible_name(format_namespace(tuple(place["namespace"])))
