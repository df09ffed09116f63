"""The command-line app: the places of the commands, and the report of their errors."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, ClassVar, Final

import typer

from locus_memory import __version__
from locus_memory.cli.lazy import CommandEntry, LazyGroup
from locus_memory.cli.options.common import AsJson
from locus_memory.cli.options.session import Globals
from locus_memory.cli.printing.examples import EXAMPLES
from locus_memory.cli.printing.outcome import INTERRUPTED, report, silence
from locus_memory.errors import LocusMemoryError
from locus_memory.inspection.errors import CommandError

__all__ = ["app", "run"]

_START: Final = "Getting started"
_MEMORIES: Final = "Memories"
_THREADS: Final = "Threads and checkpoints"
_DOCUMENTS: Final = "Documents"
_ITEMS: Final = "Store items"
_COPIES: Final = "Copies and backups"
_RESOURCES: Final = "Resources"
_KEEPING: Final = "Encryption, retention and deletion"
_MODELS: Final = "Local models"

_OF_A_USER: Final = frozenset(
    ("memories", "remember", "history", "undo", "forget", "recall", "why", "notes", "episodes")
)
"""The commands that have a `--user`, which is a project where a coding agent is plugged."""

_HELP: Final = frozenset(("-h", "--help"))


class _Top(LazyGroup):
    """The commands of `locus-memory`, in the order of the help."""

    places: ClassVar = MappingProxyType(
        {
            "demo": CommandEntry("demo.command", "demo", _START),
            "doctor": CommandEntry("commands.doctor", "doctor", _START),
            "verify": CommandEntry("commands.verify", "verify", _START),
            "chat": CommandEntry("commands.chat", "chat", _START),
            "mcp": CommandEntry("commands.serving.mcp", "commands", _START),
            "serve": CommandEntry("commands.serving.serve", "serve", _START),
            "ui": CommandEntry("commands.serving.serve", "ui", _START),
            "plug": CommandEntry("commands.serving.plug", "plug", _START),
            "presets": CommandEntry("commands.resources", "list_presets", _START),
            "memories": CommandEntry("commands.memory.memories", "list_memories", _MEMORIES),
            "remember": CommandEntry("commands.memory.memories", "remember", _MEMORIES),
            "history": CommandEntry("commands.memory.memories", "history", _MEMORIES),
            "undo": CommandEntry("commands.memory.memories", "undo", _MEMORIES),
            "forget": CommandEntry("commands.memory.forget", "forget", _MEMORIES),
            "identity": CommandEntry("commands.memory.identity", "commands", _MEMORIES),
            "notes": CommandEntry("commands.memory.identity", "list_notes", _MEMORIES),
            "episodes": CommandEntry(
                "commands.memory.identity", "list_notes", _MEMORIES, same_as="notes"
            ),
            "recall": CommandEntry("commands.memory.why", "recall", _MEMORIES),
            "why": CommandEntry("commands.memory.why", "why", _MEMORIES),
            "ingest": CommandEntry("commands.ingest", "ingest", _MEMORIES),
            "consolidate": CommandEntry("commands.memory.consolidate", "consolidate", _MEMORIES),
            "threads": CommandEntry("commands.threads.threads", "commands", _THREADS),
            "checkpoints": CommandEntry("commands.threads.checkpoints", "checkpoints", _THREADS),
            "show": CommandEntry("commands.threads.checkpoints", "show", _THREADS),
            "diff": CommandEntry("commands.threads.diff", "diff", _THREADS),
            "fork": CommandEntry("commands.threads.checkpoints", "fork", _THREADS),
            "prune": CommandEntry("commands.threads.checkpoints", "prune", _THREADS),
            "vacuum": CommandEntry("commands.threads.vacuum", "vacuum", _THREADS),
            "stats": CommandEntry("commands.threads.stats", "stats", _THREADS),
            "import": CommandEntry("commands.ingest", "ingest", _THREADS, same_as="ingest"),
            "export": CommandEntry("commands.transfer", "export", _THREADS),
            "ls": CommandEntry("commands.items", "list_items", _ITEMS),
            "get": CommandEntry("commands.items", "get", _ITEMS),
            "put": CommandEntry("commands.items", "put", _ITEMS),
            "rm": CommandEntry("commands.items", "remove", _ITEMS),
            "search": CommandEntry("commands.search", "search", _ITEMS),
            "reembed": CommandEntry("commands.reembed", "reembed", _ITEMS),
            "eval": CommandEntry("commands.evaluate", "evaluate", _ITEMS),
            "migrate": CommandEntry("commands.copies.migrate", "migrate", _COPIES),
            "backup": CommandEntry("commands.copies.backup", "backup", _COPIES),
            "restore": CommandEntry("commands.copies.backup", "restore", _COPIES),
            "docs": CommandEntry("commands.documents", "commands", _DOCUMENTS),
            "tree": CommandEntry("commands.resources", "tree", _RESOURCES),
            "cat": CommandEntry("commands.resources", "cat", _RESOURCES),
            "find": CommandEntry("commands.resources", "find", _RESOURCES),
            "compact": CommandEntry("commands.keeping.deletion", "compact", _KEEPING),
            "audit-deletion": CommandEntry("commands.keeping.deletion", "audit", _KEEPING),
            "retain": CommandEntry("commands.keeping.retain", "retain", _KEEPING),
            "rotate": CommandEntry("commands.keeping.rotate", "rotate", _KEEPING),
            "models": CommandEntry("commands.models", "commands", _MODELS),
        }
    )


app = typer.Typer(
    name="locus-memory",
    cls=_Top,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="\n".join(EXAMPLES[""]),
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
        result = app(
            _placed(arguments) or ["--help"], prog_name="locus-memory", standalone_mode=False
        )
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


def _placed(arguments: Sequence[str]) -> list[str]:
    """Return arguments with the database and the user of the project, where an agent is plugged."""
    command = next((each for each in arguments if not each.startswith("-")), "")
    if command not in _OF_A_USER or _HELP.intersection(arguments):
        return list(arguments)
    from locus_memory.plug.hook import here  # noqa: PLC0415 - the other commands start quickly

    return here(list(arguments))


def _wants_json(arguments: Sequence[str]) -> bool:
    """Return whether the arguments ask for JSON, even if they are not valid."""
    return "--json" in [*arguments, "--"][: [*arguments, "--"].index("--")]
