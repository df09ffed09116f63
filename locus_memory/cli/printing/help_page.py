"""How help is laid out: commands by what they are about, and examples that can be pasted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from typer.core import TyperCommand, TyperGroup
from typing_extensions import override

__all__ = ["Command", "Group"]

if TYPE_CHECKING:
    # Typer brings a copy of Click from some version on, and depends on Click before it.
    Context = Any
    HelpFormatter = Any


class Command(TyperCommand):
    """A command whose help ends with examples, a line each in `epilog`."""

    @override
    def format_epilog(self, ctx: Context, formatter: HelpFormatter) -> None:
        """Write the examples, each on a line of its own."""
        _write_examples(self.epilog, formatter)


class Group(TyperGroup):
    """Commands, told by the panels they are in."""

    @override
    def format_epilog(self, ctx: Context, formatter: HelpFormatter) -> None:
        """Write the examples, each on a line of its own."""
        _write_examples(self.epilog, formatter)

    @override
    def format_commands(self, ctx: Context, formatter: HelpFormatter) -> None:
        """Write the commands of each panel, with all of their first lines."""
        panels: dict[str, list[tuple[str, str]]] = {}
        for name in self.list_commands(ctx):
            command: Any = self.get_command(ctx, name)
            panel = getattr(command, "rich_help_panel", None) or "Commands"
            rows = panels.setdefault(str(panel), [])
            # Typer lists what has commands of its own last.
            place = 0 if isinstance(command, TyperGroup) else len(rows)
            rows.insert(place, (name, _first_line(command)))
        width = max(len(name) for rows in panels.values() for name, _ in rows)
        for title, rows in panels.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(width), text) for name, text in rows])


def _first_line(command: Any) -> str:
    return str(command.help or "").strip().partition("\n")[0]


def _write_examples(epilog: str | None, formatter: HelpFormatter) -> None:
    if epilog:
        with formatter.section("Examples"):
            for line in epilog.splitlines():
                formatter.write(f"{'':>{formatter.current_indent}}{line}\n")
