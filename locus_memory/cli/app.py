"""The command-line app: it registers the commands and reports their errors."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated

import typer

from locus_memory import __version__
from locus_memory.cli.commands import (
    chat,
    doctor,
    evaluate,
    items,
    models,
    reembed,
    resources,
    search,
    transfer,
    verify,
)
from locus_memory.cli.commands.memory import consolidate, forget, identity, ingest, memories
from locus_memory.cli.commands.threads import checkpoints, diff, vacuum
from locus_memory.cli.commands.threads import threads as thread_list
from locus_memory.cli.demo import command as demo
from locus_memory.cli.options.common import AsJson
from locus_memory.cli.options.session import Globals
from locus_memory.cli.printing.examples import EXAMPLES
from locus_memory.cli.printing.help_page import Command, Group
from locus_memory.cli.printing.outcome import INTERRUPTED, CommandError, report, silence
from locus_memory.errors import LocusMemoryError

__all__ = ["app", "run"]

_START = "Getting started"
_MEMORIES = "Memories"
_THREADS = "Threads and checkpoints"
_ITEMS = "Store items"
_RESOURCES = "Resources"
_MODELS = "Local models"

app = typer.Typer(
    name="locus-memory",
    cls=Group,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="\n".join(EXAMPLES[""]),
)
_threads = typer.Typer(cls=Group, rich_markup_mode=None, invoke_without_command=True)
_identity = typer.Typer(cls=Group, rich_markup_mode=None, invoke_without_command=True)


def _add(name: str, command: Callable[..., None], panel: str) -> None:
    examples = "\n".join(EXAMPLES[name])
    app.command(name, cls=Command, epilog=examples, rich_help_panel=panel)(command)


_add("demo", demo.demo, _START)
_add("doctor", doctor.doctor, _START)
_add("verify", verify.verify, _START)
_add("chat", chat.chat, _START)
_add("presets", resources.list_presets, _START)
_add("memories", memories.list_memories, _MEMORIES)
_add("remember", memories.remember, _MEMORIES)
_add("history", memories.history, _MEMORIES)
_add("undo", memories.undo, _MEMORIES)
_add("forget", forget.forget, _MEMORIES)
_identity.callback()(identity.show_identity)
for _name, _command in (("add", identity.add_override), ("remove", identity.remove_override)):
    _identity.command(_name, cls=Command, epilog="\n".join(EXAMPLES[f"identity {_name}"]))(_command)
app.add_typer(
    _identity,
    name="identity",
    epilog="\n".join(EXAMPLES["identity"]),
    rich_help_panel=_MEMORIES,
)
_add("episodes", identity.list_episodes, _MEMORIES)
_add("ingest", ingest.ingest, _MEMORIES)
_add("consolidate", consolidate.consolidate, _MEMORIES)
_threads.callback()(thread_list.list_threads)
_threads.command("rm", cls=Command, epilog="\n".join(EXAMPLES["threads rm"]))(
    thread_list.remove_threads
)
app.add_typer(
    _threads, name="threads", epilog="\n".join(EXAMPLES["threads"]), rich_help_panel=_THREADS
)
_add("checkpoints", checkpoints.checkpoints, _THREADS)
_add("show", checkpoints.show, _THREADS)
_add("diff", diff.diff, _THREADS)
_add("fork", checkpoints.fork, _THREADS)
_add("prune", checkpoints.prune, _THREADS)
_add("vacuum", vacuum.vacuum, _THREADS)
_add("stats", checkpoints.stats, _THREADS)
_add("import", transfer.import_files, _THREADS)
_add("export", transfer.export, _THREADS)
_add("ls", items.list_items, _ITEMS)
_add("get", items.get, _ITEMS)
_add("put", items.put, _ITEMS)
_add("rm", items.remove, _ITEMS)
_add("search", search.search, _ITEMS)
_add("reembed", reembed.reembed, _ITEMS)
_add("eval", evaluate.evaluate, _ITEMS)
_add("tree", resources.tree, _RESOURCES)
_add("cat", resources.cat, _RESOURCES)
_add("find", resources.find, _RESOURCES)
app.add_typer(
    models.commands,
    name="models",
    epilog="\n".join(EXAMPLES["models"]),
    rich_help_panel=_MODELS,
)


def _print_version(wanted: bool) -> None:  # noqa: FBT001 - typer passes it by position
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
            help="Database URL; sqlite:./locus.db by default.",
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
    """Inspect, change and move an agent's memory: its items and its threads."""
    del version
    context.obj = Globals(url, as_json)


def run(arguments: Sequence[str]) -> int:
    """Run one command and return its exit code; every error becomes one line on stderr.

    With `--json`, an error is also one document on stdout.
    """
    if sys.stderr is None:
        sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - open until the end
    if sys.stdout is None:
        return report(CommandError("stdout is closed: the command cannot print a result"))
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A character that the terminal cannot show must not fail the command.
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
        return report(error, as_json=_wants_json(arguments))
    except Exception as error:
        if os.environ.get("LOCUS_MEMORY_DEBUG"):
            raise
        return report(error, as_json=_wants_json(arguments))
    return result if isinstance(result, int) else 0


def _wants_json(arguments: Sequence[str]) -> bool:
    """Return whether the arguments ask for JSON, even if they are not valid."""
    return "--json" in [*arguments, "--"][: [*arguments, "--"].index("--")]
