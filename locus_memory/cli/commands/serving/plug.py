"""The command `plug`: puts the memory into the settings of a coding agent, and takes it out."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import orjson
import typer

from locus_memory.cli.options.common import AsJson, Url
from locus_memory.cli.printing.output import note, print_json, write_out
from locus_memory.inspection.errors import CommandError

if TYPE_CHECKING:
    from locus_memory.plug.settings import Change

__all__ = ["plug"]

_FILE = "sqlite:"


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
    folder = Path.cwd() if project else None
    where, own = _absolute(url or context.obj.url), plug_file(host, folder)
    is_secret = where is not None and (not where.startswith(_FILE) or "?" in where)
    given = {"--url": where, "--person": person, "--model": model}
    options = [each for name, value in given.items() if value for each in (name, value)]
    options += ["--by-remote"] if by_remote else []
    command = [*COMMAND, host, *(["--options", f"{own}"] if is_secret else options)]
    originals = Originals(data_folder() / "originals")
    found = changes(HOSTS[host], folder, None if remove else command, originals)
    if not dry_run:
        write_secret(own, None if remove else orjson.dumps(options).decode())
    for change in [] if dry_run else found:
        # What is killed in between still knows the text from before.
        if not remove:
            originals.keep(change)
        change.write()
        if remove:
            originals.drop(change.path)
    if as_json or context.obj.as_json:
        told = [{"path": f"{path}", "before": was, "after": now} for path, was, now, _ in found]
        print_json({"changes": told})
    elif found:
        write_out("".join(map(_difference, found)))
    else:
        note("nothing to change")


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
