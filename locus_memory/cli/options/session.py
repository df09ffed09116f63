"""One run of a command: its database and its output format."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import partial
from inspect import Parameter, Signature, signature
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeVar, get_args, get_type_hints

import typer

from locus_memory.cli.options.common import AsJson, Url, options_given
from locus_memory.cli.printing.outcome import Interrupted
from locus_memory.cli.printing.output import console, note, print_json
from locus_memory.cli.printing.paging import how_many, same_command
from locus_memory.errors import ConfigurationError, MissingDriverError
from locus_memory.inspection.errors import CommandError, UsageError

if TYPE_CHECKING:
    from rich.console import Console

    from locus_memory._internal.providers.address import Address
    from locus_memory.backends.base import Backend
    from locus_memory.registry import Provider

__all__ = [
    "DEFAULT_URL",
    "Globals",
    "Session",
    "WithJson",
    "WithUrl",
    "encryption",
    "opened_backend",
    "with_session",
]

DEFAULT_URL = "sqlite:./locus.db"

Answer = TypeVar("Answer")
Source = TypeVar("Source")


@dataclass(frozen=True, slots=True)
class Globals:
    """The options given before the command's name."""

    url: str | None = None
    as_json: bool = False


@dataclass(frozen=True, slots=True)
class Session:
    """The database and the output format of one run.

    Attributes:
        url: A provider string.
        as_json: Whether to print JSON.
        context: The command that was called; `None`: none.
    """

    url: str
    as_json: bool
    context: typer.Context | None = None

    @classmethod
    def of(cls, context: typer.Context, url: str | None, *, as_json: bool) -> Session:
        """Return the session for the options before and after the command's name."""
        given: Globals = context.obj
        return cls(url or given.url or DEFAULT_URL, as_json or given.as_json, context)

    def resolve(self) -> tuple[Address, Provider]:
        """Return the address the URL resolves to and its provider.

        Raises:
            UsageError: The URL is not valid.
        """
        from locus_memory.registry import resolve_address  # noqa: PLC0415 - help must be quick

        try:
            return resolve_address(self.url)
        except MissingDriverError:
            raise
        except ConfigurationError as error:
            raise UsageError(str(error)) from error

    @property
    def path(self) -> Path | None:
        """The file or folder of the database, or `None` for a server."""
        address, provider = self.resolve()
        if not provider.is_path or address.hint in (None, ":memory:"):
            return None
        return Path(str(address.hint))

    def run(
        self,
        work: Callable[[Backend], Awaitable[Answer]],
        *,
        create: bool = False,
        opened: bool = True,
    ) -> Answer:
        """Open the backend, do the work and close it.

        Args:
            work: A function that takes the open backend; its states are plain dicts.
            create: Whether to create a missing database instead of raising.
            opened: Whether to open it before the work, which brings its tables up to date.

        Raises:
            CommandError: The database does not exist.
        """
        import asyncio  # noqa: PLC0415 - help must be quick

        path = self.path
        if not create and path is not None and not path.exists():
            raise CommandError(f"no database at {self.resolve()[0]}: name one with --url")
        return asyncio.run(self._run(work, opened=opened))

    def show(
        self,
        work: Callable[[Backend], Awaitable[Answer]],
        render: Callable[..., None],
        *,
        create: bool = False,
    ) -> Answer:
        """Do the work, print its document, and return it.

        Args:
            work: As of `run`.
            render: Takes a console and the `document`, which it prints as text.
            create: As of `run`.
        """
        document = self.run(work, create=create)
        self.answer(document, partial(render, document=document))
        return document

    def copy(
        self,
        source: AbstractAsyncContextManager[Source],
        work: Callable[[Source, Backend], Awaitable[Answer]],
    ) -> Answer:
        """Open a source, then the backend, which may be created; do the work and close both.

        Args:
            source: Raises an error before the backend is opened if it cannot be read.
            work: A function that takes the source and the backend, as of `run`.
        """
        import asyncio  # noqa: PLC0415 - help must be quick

        async def copied() -> Answer:
            async with source as one:
                return await self._run(partial(work, one), opened=True)

        return asyncio.run(copied())

    async def _run(self, work: Callable[[Backend], Awaitable[Answer]], *, opened: bool) -> Answer:
        options = {"state_type": None, **encryption()}
        async with opened_backend(self.url, options, is_opened=opened) as backend:
            from locus_memory.inspection.names import naming_nearest  # noqa: PLC0415 - help must be quick

            async with naming_nearest(backend):
                return await work(backend)

    def answer(self, document: Any, render: Callable[[Console], None]) -> None:
        """Print the JSON document, or let `render` print it as text."""
        if self.as_json:
            print_json(document)
        else:
            render(console())

    @property
    def given(self) -> dict[str, str]:
        """What the command line has of the command, as `options_given`."""
        return {} if self.context is None else options_given(self.context)

    def command(self, **changed: Any) -> str:
        """Return the command that was called, as `same_command`."""
        return "" if self.context is None else same_command(self.context, **changed)

    def tell_more(self, count: int | None, what: str = "more", **options: Any) -> None:
        """Print on stderr, below a list, what it left out, and the command that shows it.

        Args:
            count: Number of rows left out; 0 prints nothing; `None`: it is not known.
            what: Name of the rows.
            options: The options of the command that differ, by parameter.
        """
        if count != 0 and not self.as_json:
            told = what if count is None else f"{how_many(count)} {what}"
            note(f"{told}: {self.command(**options)}", verbatim=True)

    @contextmanager
    def continued(self, done: str) -> Generator[None]:
        """Tell the command that continues, if the work is interrupted.

        Args:
            done: What happened to what stays, such as `copied`.

        Raises:
            Interrupted: The user interrupted the command.
        """
        import asyncio  # noqa: PLC0415 - help must be quick

        try:
            yield
        except (KeyboardInterrupt, asyncio.CancelledError):
            command = self.command()
            message = f"interrupted; what is {done} stays. To continue, run: {command}"
            raise Interrupted(message, hint=command) from None


WithJson = Annotated[Session, "as_json"]
WithUrl = Annotated[Session, "url"]
"""The session of a command that has only one of the two shared options."""

_SHARED: Final = {"url": (Url, None), "as_json": (AsJson, False)}
"""The annotation and the default of each option that a session is made of."""


def with_session(function: Callable[..., None]) -> Callable[..., None]:
    """Return a command whose function takes a `Session`: `--url` and `--json` are added to it.

    The callback of a group is called only without a subcommand, which otherwise gets the session.

    Args:
        function: Takes a `Session`, `WithJson` or `WithUrl` first; another is returned as it is.
    """
    hints = get_type_hints(function, include_extras=True)
    kind = hints.get("session")
    if kind is None:
        return function
    names = get_args(kind)[1:] or tuple(_SHARED)

    def command(context: typer.Context, **given: Any) -> None:
        url, as_json = (given.pop(each) if each in names else None for each in _SHARED)
        session = Session.of(context, url, as_json=bool(as_json))
        if context.invoked_subcommand is None:
            function(session, **given)
        else:
            _pass_on(context, session)

    _, *own = signature(function).parameters.values()
    parameters = [Parameter("context", Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context)]
    parameters += [each.replace(annotation=hints[each.name]) for each in own]
    for name in names:
        annotation, default = _SHARED[name]
        option = Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
        parameters.append(option)
    command.__name__, command.__doc__ = function.__name__, function.__doc__
    command.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {each.name: each.annotation for each in parameters}
    return command


def _pass_on(context: typer.Context, session: Session) -> None:
    """Let a subcommand use the session of its group.

    Raises:
        UsageError: An option was given before the subcommand, which would be ignored.
    """
    command = f"{context.info_name} {context.invoked_subcommand}"
    for name, written in options_given(context).items():
        if name not in _SHARED:
            raise UsageError(f"{written} stands after {command!r}, or is none of its options")
    context.obj = Globals(session.url, session.as_json)


@asynccontextmanager
async def opened_backend(
    url: str, options: Mapping[str, Any] = MappingProxyType({}), *, is_opened: bool = True
) -> AsyncGenerator[Backend]:
    """Yield a backend, which is closed at the end.

    Args:
        url: A provider string.
        options: Options of `open_backend`.
        is_opened: Whether to open it, which brings its tables up to date.
    """
    from locus_memory.registry import open_backend  # noqa: PLC0415 - help must be quick

    backend = open_backend(url, **options)
    try:
        if is_opened:
            await backend.open()
        yield backend
    finally:
        # A backend that failed to open may still hold resources.
        await backend.close()


def encryption() -> dict[str, Any]:
    """Return the option `encryption` of `open_backend`, if the environment has keys.

    Raises:
        ConfigurationError: The variable is not valid.
    """
    from locus_memory.encryption.keys import KEYS_VARIABLE  # noqa: PLC0415 - help must be quick

    text = os.environ.get(KEYS_VARIABLE)
    return {"encryption": text} if text else {}
