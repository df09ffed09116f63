"""The commands, put together, and the one place where their errors end."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from locus_memory import __version__
from locus_memory.cli import (
    chat,
    compare,
    demo,
    doctor,
    evaluate,
    forgetting,
    items,
    memories,
    reembed,
    searching,
    threads,
    transfer,
)
from locus_memory.cli.options import AsJson
from locus_memory.cli.outcome import INTERRUPTED, CommandError, report, silence
from locus_memory.cli.session import Globals
from locus_memory.errors import LocusMemoryError

__all__ = ["app", "run"]

app = typer.Typer(name="locus-memory", add_completion=False, rich_markup_mode=None)

app.command()(demo.demo)
app.command()(doctor.doctor)
app.command("ls")(items.list_items)
app.command("get")(items.get)
app.command("put")(items.put)
app.command("rm")(items.remove)
app.command()(searching.search)
app.command()(chat.chat)
app.command("memories")(memories.list_memories)
app.command()(memories.remember)
app.command()(memories.history)
app.command()(memories.undo)
app.command()(forgetting.forget)
app.command("threads")(threads.list_threads)
app.command()(threads.checkpoints)
app.command()(threads.show)
app.command()(compare.diff)
app.command()(threads.fork)
app.command()(threads.prune)
app.command()(threads.stats)
app.command("import")(transfer.import_files)
app.command()(transfer.export)
app.command()(reembed.reembed)
app.command("eval")(evaluate.evaluate)


def _print_version(wanted: bool) -> None:  # noqa: FBT001 - typer calls it so
    if wanted:
        sys.stdout.write(f"locus-memory {__version__}\n")
        raise typer.Exit


@app.callback()
def main(
    context: typer.Context,
    *,
    url: Annotated[
        str | None,
        typer.Option(
            "--url",
            metavar="URL",
            envvar="LOCUS_MEMORY_URL",
            help="Where the data is; sqlite:./locus.db by default.",
        ),
    ] = None,
    as_json: AsJson = False,
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version.", callback=_print_version, is_eager=True
        ),
    ] = False,
) -> None:
    """Look at, change and carry the memory of an agent: its items and its threads."""
    del version
    context.obj = Globals(url, as_json)


def run(arguments: Sequence[str]) -> int:
    """Run one command and return its exit code; every error becomes one line on stderr."""
    if sys.stderr is None:
        sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - open until the end
    if sys.stdout is None:
        return report(CommandError("stdout is closed: there is nowhere to answer"))
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A terminal that cannot show a character is no reason to fail.
            stream.reconfigure(errors="backslashreplace")
    try:
        result = app(list(arguments) or ["--help"], prog_name="locus-memory", standalone_mode=False)
        sys.stdout.flush()
    except BrokenPipeError:
        silence()
        return CommandError.exit_code
    except (KeyboardInterrupt, typer.Abort):
        return INTERRUPTED
    except (CommandError, LocusMemoryError, OSError) as error:
        return report(error)
    except Exception as error:
        if os.environ.get("LOCUS_MEMORY_DEBUG"):
            raise
        return report(error)
    return result if isinstance(result, int) else 0
