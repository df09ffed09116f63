"""Commands that are imported and built when they are called, so that each one starts quickly.

Typer builds every command of an app before it runs one, from the options of its function.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, MutableMapping
from dataclasses import dataclass
from importlib import import_module
from inspect import getdoc
from typing import Any, ClassVar, Final

import typer.main
from typing_extensions import override

from locus_memory.cli.options.session import with_session
from locus_memory.cli.printing.examples import EXAMPLES
from locus_memory.cli.printing.help_page import Command, Group

__all__ = ["CommandEntry", "LazyCommands", "LazyGroup", "subcommands"]

_PACKAGE: Final = "locus_memory.cli"


@dataclass(frozen=True, slots=True)
class CommandEntry:
    """The place of a command.

    Attributes:
        module: Its module, below this package.
        name: The name of its function, or of the `Typer` of a command with subcommands.
        panel: Its panel of the help.
        same_as: The command of which this is another name; empty: none.
    """

    module: str
    name: str
    panel: str
    same_as: str = ""


class LazyCommands(MutableMapping[str, Any]):
    """The commands of a group by name; one is imported and built when it is looked up.

    Args:
        places: The places of the commands by name, in order.
    """

    def __init__(self, places: Mapping[str, CommandEntry]) -> None:
        self._places = places
        self._built: dict[str, Any] = {}

    @override
    def __getitem__(self, name: str) -> Any:
        if name not in self._built:
            self._built[name] = _build(name, self._places[name])
        return self._built[name]

    @override
    def __contains__(self, name: object) -> bool:
        return name in self._places or name in self._built

    @override
    def __iter__(self) -> Iterator[str]:
        return iter({**self._places, **self._built})

    @override
    def __len__(self) -> int:
        return len({**self._places, **self._built})

    @override
    def __setitem__(self, name: str, command: Any) -> None:
        self._built[name] = command

    @override
    def __delitem__(self, name: str) -> None:
        raise TypeError(f"the command {name!r} cannot be removed")


class LazyGroup(Group):
    """A group whose commands are built when they are called.

    Attributes:
        places: The places of the commands by name, in order; a subclass has them.
    """

    places: ClassVar[Mapping[str, CommandEntry]]

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.commands = LazyCommands(self.places)

    @override
    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of the commands; none is built."""
        return list(self.commands)


def subcommands(
    name: str, callback: Callable[..., None], functions: Mapping[str, Callable[..., None]]
) -> typer.Typer:
    """Return a command that does something itself and has subcommands, with their examples.

    Args:
        name: Its name.
        callback: The function that is called without a subcommand; it takes a `Session`.
        functions: The functions of the subcommands by name.
    """
    made = typer.Typer(
        name=name,
        cls=Group,
        rich_markup_mode=None,
        invoke_without_command=True,
        add_completion=False,
        epilog="\n".join(EXAMPLES[name]),
    )
    made.callback()(with_session(callback))
    for each, function in functions.items():
        _add(made, each, function, EXAMPLES[f"{name} {each}"])
    return made


def _build(name: str, place: CommandEntry) -> Any:
    found: Any = getattr(import_module(f"{_PACKAGE}.{place.module}"), place.name)
    if not isinstance(found, typer.Typer):
        single = typer.Typer(rich_markup_mode=None, add_completion=False)
        _add(single, name, found, EXAMPLES[name], place.same_as)
        found = single
    command: Any = typer.main.get_command(found)
    command.rich_help_panel = place.panel
    return command


def _add(
    group: typer.Typer,
    name: str,
    function: Callable[..., None],
    examples: tuple[str, ...],
    same_as: str = "",
) -> None:
    told = f"Another name of `{same_as}`.\n\n{getdoc(function)}" if same_as else None
    group.command(name, cls=Command, help=told, epilog="\n".join(examples))(with_session(function))
