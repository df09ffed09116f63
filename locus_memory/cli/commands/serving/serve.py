"""The commands `serve`, the JSON API over a database, and `ui`, its pages with the API beside."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from locus_memory._internal.providers.drivers import require
from locus_memory.cli.options.memories import DEFAULT_PREFIX, Prefix
from locus_memory.cli.options.models import EmbedderOption, open_embedder
from locus_memory.cli.options.session import Session, WithUrl
from locus_memory.cli.printing.output import note
from locus_memory.errors import ConfigurationError
from locus_memory.inspection.errors import UsageError
from locus_memory.inspection.names import parse_namespace

if TYPE_CHECKING:
    from locus_memory.backends.base import Backend
    from locus_memory.web.settings import Settings

__all__ = ["serve", "ui"]

_HOST, _PORT = "127.0.0.1", 8484

_Host = Annotated[
    str,
    typer.Option("--host", metavar="HOST", help="Address to listen on; others need a token."),
]
_Port = Annotated[
    int, typer.Option("--port", metavar="N", min=0, max=65_535, help="Port; 0: a free one.")
]
_Token = Annotated[
    str | None,
    typer.Option(
        "--token",
        metavar="TOKEN",
        envvar="LOCUS_MEMORY_TOKEN",
        help="Token that each client must show.",
    ),
]
_Names = Annotated[
    list[str] | None,
    typer.Option("--allow-host", metavar="NAME", help="Further name of this server; repeatable."),
]
_ReadOnly = Annotated[
    bool, typer.Option("--read-only", help="Refuse every request that could write.")
]


def serve(
    session: WithUrl,
    *,
    host: _Host = _HOST,
    port: _Port = _PORT,
    token: _Token = None,
    allow_host: _Names = None,
    read_only: _ReadOnly = False,
    embedder: EmbedderOption = None,
    prefix: Prefix = DEFAULT_PREFIX,
) -> None:
    """Serve the JSON API over a database, for this machine alone.

    Another address needs --token, or the variable LOCUS_MEMORY_TOKEN. The API is described at
    /api/v1/openapi.json. Ctrl-C stops the server.
    """
    _listen(
        session,
        web=require("locus_memory.web", "ui", needed_by="locus-memory serve"),
        pages=None,
        create=True,
        embedder=embedder,
        settings={
            "host": host,
            "port": port,
            "token": token,
            "allowed_hosts": tuple(allow_host or ()),
            "read_only": read_only,
            "namespace": parse_namespace(prefix),
        },
    )


def ui(
    session: WithUrl,
    *,
    host: _Host = _HOST,
    port: _Port = _PORT,
    token: _Token = None,
    allow_host: _Names = None,
    read_only: _ReadOnly = False,
    runs: Annotated[
        list[Path] | None,
        typer.Option("--eval", metavar="RUN", help="Also report a run of eval; repeatable."),
    ] = None,
    embedder: EmbedderOption = None,
    prefix: Prefix = DEFAULT_PREFIX,
) -> None:
    """Look at a database in the browser: threads, memories, items and what the model saw.

    The server is for this machine alone; another address needs --token, or the variable
    LOCUS_MEMORY_TOKEN, which the browser asks for. The JSON API is there as well. Ctrl-C stops
    the server.
    """
    pages = require("locus_memory.web.pages", "ui", needed_by="locus-memory ui")
    make_pages = pages.make_pages
    if runs:
        from locus_memory.cli.quality.charts import quality_plots  # noqa: PLC0415 - as needed
        from locus_memory.evaluation.quality.documents import quality_tables  # noqa: PLC0415
        from locus_memory.evaluation.quality.figures import read_quality  # noqa: PLC0415

        quality = read_quality(runs)
        make_pages = partial(make_pages, quality_tables(quality), quality_plots(quality))
    _listen(
        session,
        web=require("locus_memory.web", "ui", needed_by="locus-memory ui"),
        pages=make_pages,
        create=bool(runs),
        embedder=embedder,
        settings={
            "host": host,
            "port": port,
            "token": token,
            "allowed_hosts": tuple(allow_host or ()),
            "read_only": read_only,
            "namespace": parse_namespace(prefix),
        },
    )


def _listen(
    session: Session,
    *,
    web: ModuleType,
    pages: Callable[[], Any] | None,
    create: bool,
    embedder: str | None,
    settings: dict[str, Any],
) -> None:
    """Serve a database until the process is asked to stop; `create` makes a missing one.

    Raises:
        UsageError: A setting cannot work.
    """
    try:
        checked: Settings = web.Settings(**settings, database=str(session.resolve()[0]))
    except ConfigurationError as error:
        raise UsageError(str(error)) from error
    work = partial(_serve, web=web, settings=checked, pages=pages, embedder=embedder)
    session.run(work, create=create and not checked.read_only)


async def _serve(
    backend: Backend,
    *,
    web: ModuleType,
    settings: Settings,
    pages: Callable[[], Any] | None,
    embedder: str | None,
) -> None:
    model = None if embedder is None else open_embedder(embedder)
    made = None if pages is None else pages()
    app = web.make_app(backend, settings, embedder=model, pages=made)

    def tell(address: str) -> None:
        where = f"{address}/api/v1" if made is None else f"{address}/"
        mode = ", read-only" if settings.read_only else ""
        note(f"serving {settings.database} at {where}{mode}; Ctrl-C stops", verbatim=True)

    await web.serve(app, settings, tell)
