"""The layout of the help: commands in panels, and examples ready to paste."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from typer.core import TyperCommand, TyperGroup
from typing_extensions import override

from locus_memory.cli.printing.examples import EXAMPLES

__all__ = ["Command", "Group"]

if TYPE_CHECKING:
    # Newer versions of Typer bundle a copy of Click; older ones depend on Click.
    Context = Any
    HelpFormatter = Any


_ORDER: Final = {name: place for place, name in enumerate(EXAMPLES)}

_DESTRUCTIVE: Final = frozenset(
    (
        "compact",
        "consolidate",
        "forget",
        "prune",
        "remove",
        "restore",
        "retain",
        "rm",
        "rotate",
        "vacuum",
    )
)
"""Commands that erase or overwrite: none is the guess for a name that is not there."""

_MEANT: Final = {
    **dict.fromkeys(("add", "change", "correct", "edit", "save", "set", "update"), "remember"),
    "list": "memories",
}
"""What other programs call a command."""


class Command(TyperCommand):
    """A command whose help ends with examples; `epilog` has one per line."""

    @override
    def format_epilog(self, ctx: Context, formatter: HelpFormatter) -> None:
        """Write the examples, one per line."""
        _write_examples(self.epilog, formatter)


class Group(TyperGroup):
    """A group whose help lists the commands by panel, and which guesses no command that erases."""

    @override
    def resolve_command(self, ctx: Context, args: list[str]) -> tuple[Any, Any, list[str]]:
        """Return the name, the command and its arguments; an error names the nearest command."""
        name = args[0]
        if name.startswith("-") or ctx.resilient_parsing or self.get_command(ctx, name):
            return super().resolve_command(ctx, args)
        from locus_memory._internal.quoting import quote  # noqa: PLC0415 - help must be quick
        from locus_memory.inspection.names import near  # noqa: PLC0415 - the same

        known = self.list_commands(ctx)
        meant = _MEANT.get(name, name)
        told = near(meant, [each for each in known if each not in _DESTRUCTIVE])
        return ctx.fail(  # type: ignore[no-any-return] # it raises
            f"no command {quote(name)}{told or f': see {ctx.command_path} --help'}"
        )

    @override
    def format_epilog(self, ctx: Context, formatter: HelpFormatter) -> None:
        """Write the examples, one per line."""
        _write_examples(self.epilog, formatter)

    @override
    def format_commands(self, ctx: Context, formatter: HelpFormatter) -> None:
        """Write the commands of each panel with the first lines of their help, uncut."""
        panels: dict[str, list[tuple[str, str]]] = {}
        # Typer lists groups last.
        for name in sorted(self.list_commands(ctx), key=_place):
            command: Any = self.get_command(ctx, name)
            panel = getattr(command, "rich_help_panel", None) or "Commands"
            first, _, _ = str(command.help or "").strip().partition("\n")
            panels.setdefault(str(panel), []).append((name, first))
        width = max(len(name) for rows in panels.values() for name, _ in rows)
        for title, rows in panels.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(width), text) for name, text in rows])


def _place(name: str) -> int:
    """Return the place of a command: that of its examples; other commands keep their order."""
    return _ORDER.get(name, len(_ORDER))


def _write_examples(epilog: str | None, formatter: HelpFormatter) -> None:
    if epilog:
        with formatter.section("Examples"):
            for line in epilog.splitlines():
                formatter.write(f"{'':>{formatter.current_indent}}{line}\n")
