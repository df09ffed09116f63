"""The command `plug`: puts the memory into the settings of a coding agent, and takes it out."""

from __future__ import annotations

import difflib
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import orjson
import typer

from locus_memory.cli.options.common import AsJson, Url
from locus_memory.cli.printing.output import note, print_json, write_out
from locus_memory.inspection.errors import CommandError, UsageError

if TYPE_CHECKING:
    from locus_memory.plug.hosts import Host
    from locus_memory.plug.settings import Change, Originals

__all__ = ["plug"]

_FILE = "sqlite:"
_DAYS = 30


def plug(
    context: typer.Context,
    host: Annotated[
        str, typer.Argument(metavar="HOST", help="claude-code, codex, gemini or opencode.")
    ],
    *,
    project: Annotated[
        bool, typer.Option("--project/--user", help="In this folder, or in your home folder.")
    ] = False,
    remove: Annotated[bool, typer.Option("--remove", help="Take it out again.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--print", "--dry-run", help="Only print what would change.")
    ] = False,
    status_line: Annotated[
        bool, typer.Option("--status-line", help="Show how much is known, in Claude Code.")
    ] = False,
    imports: Annotated[
        bool,
        typer.Option("--import", help="Read sessions of the last 30 days, and CLAUDE.md and such."),
    ] = False,
    trust: Annotated[
        bool, typer.Option("--trust", help="With --import: vouch for the files of this folder.")
    ] = False,
    model: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Model that reads facts and notes; none by default."),
    ] = None,
    person: Annotated[
        str | None,
        typer.Option(metavar="ID", help="Whose memories all projects show; by default, you."),
    ] = None,
    by_remote: Annotated[
        bool, typer.Option("--by-remote", help="Worktrees and clones are one project.")
    ] = False,
    url: Url = None,
    as_json: AsJson = False,
) -> None:
    """Plug the memory into a coding agent.

    It writes the hooks and the MCP server into the settings of the agent. What stands there stays,
    and --remove leaves the files as they were. The database is a file in your data folder unless
    --url names another.

    --import keeps what was said in sessions of the last 30 days, with --project in those of this
    folder alone, and what CLAUDE.md, AGENTS.md and .cursor/rules say, from the root of the project
    to this folder. What is kept already stays, so it can be repeated.
    """
    from locus_memory.plug.data_folder import data_folder  # noqa: PLC0415 - help must be quick
    from locus_memory.plug.hosts import HOSTS  # noqa: PLC0415 - help must be quick
    from locus_memory.plug.settings import (  # noqa: PLC0415 - the same
        COMMAND,
        Originals,
        changes,
        plug_file,
        write_secret,
    )

    if host not in HOSTS:
        raise CommandError(f"no host {host!r}: there are {', '.join(HOSTS)}")
    if (imports and (remove or dry_run)) or (trust and not imports):
        raise UsageError("--trust needs --import, which goes with neither --remove nor --dry-run")
    if status_line and not HOSTS[host].has_line:
        raise UsageError(f"{host} has no status line that a command prints")
    folder = Path.cwd() if project else None
    where, own = _absolute(url or context.obj.url), plug_file(host, folder)
    is_secret = where is not None and (not where.startswith(_FILE) or "?" in where)
    given = {"--url": where, "--person": person, "--model": model}
    options = [each for name, value in given.items() if value for each in (name, value)]
    options += ["--by-remote"] if by_remote else []
    command = [*COMMAND, host, *(["--options", f"{own}"] if is_secret else options)]
    originals = Originals(data_folder() / "originals")
    written = None if remove else command
    found = changes(HOSTS[host], folder, written, originals, has_line=status_line)
    if not dry_run:
        write_secret(own, None if remove else orjson.dumps(options).decode())
        _write(found, originals, removes=remove)
    as_json = as_json or context.obj.as_json
    counts = None
    if imports:
        from asyncio import run  # noqa: PLC0415 - help must be quick

        counts = run(_imported(HOSTS[host], folder, options, trust=trust, quiet=as_json))
    if as_json:
        told = [{"path": f"{path}", "before": was, "after": now} for path, was, now, _ in found]
        print_json({"changes": told, **(counts or {})})
    else:
        _tell(found, counts)


def _write(found: list[Change], originals: Originals, *, removes: bool) -> None:
    for change in found:
        # What is killed in between still knows the text from before.
        if not removes:
            originals.keep(change)
        change.write()
        if removes:
            originals.drop(change.path)


def _tell(found: list[Change], counts: dict[str, int] | None) -> None:
    if found:
        write_out("".join(map(_difference, found)))
    if counts is not None:
        note(f"{counts['sessions']} sessions and {counts['sections']} sections of files read")
    elif not found:
        note("nothing to change")


async def _imported(
    host: Host, folder: Path | None, options: list[str], *, trust: bool, quiet: bool
) -> dict[str, int]:
    """Keep what was there before; returns how many sessions and sections of files that is."""
    from locus_memory.cli.printing.progress import tracked  # noqa: PLC0415 - help must be quick
    from locus_memory.memory import LLMMemoryManager  # noqa: PLC0415 - the same
    from locus_memory.plug.hook import Settings, answer  # noqa: PLC0415 - the same
    from locus_memory.plug.importing import import_documents, sessions_of  # noqa: PLC0415 - the same

    settings = Settings.read(options)
    own = settings.project(".")
    events = [
        each
        for each in sessions_of(host, time.time() - _DAYS * 86_400)
        if folder is None or settings.project(each["cwd"]) == own
    ]
    for event in tracked(events, "sessions", quiet=quiet):
        await answer(host, event, settings)
    async with settings.opened() as store, LLMMemoryManager(store) as manager:
        sections = await import_documents(manager.for_user(own), Path.cwd(), trust=trust)
    return {"sessions": len(events), "sections": sections}


def _difference(change: Change) -> str:
    before, after = ((text or "").splitlines() for text in (change.before, change.after))
    name = f"{change.path}"
    rows = difflib.unified_diff(before, after, name, name, lineterm="")
    return "".join(f"{row}\n" for row in rows)


def _absolute(url: str | None) -> str | None:
    """Return a URL that means the same in every folder."""
    from locus_memory._internal.providers.address import is_path  # noqa: PLC0415 - help must be quick
    from locus_memory.backends.providers import PROVIDERS  # noqa: PLC0415 - the same

    files = PROVIDERS["sqlite"]
    if url == _FILE.removesuffix(":"):
        url = f"{_FILE}{files.default}"
    if url is not None and url.startswith("@"):
        raise CommandError("a preset may be another one in each project: name its URL")
    if url is None or not (url.startswith(_FILE) or is_path(url, files.suffixes, PROVIDERS)):
        return url
    return f"{_FILE}{Path(url.removeprefix(_FILE)).expanduser().absolute()}"
