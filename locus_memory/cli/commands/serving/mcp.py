"""The commands `mcp`, which serves memories over the Model Context Protocol, and `mcp import`."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import asdict
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from locus_memory._internal.quoting import quote
from locus_memory.cli.lazy import subcommands
from locus_memory.cli.options.memories import DEFAULT_PREFIX, Prefix, UserOption
from locus_memory.cli.options.models import EmbedderOption, open_embedder
from locus_memory.cli.options.session import Session
from locus_memory.cli.printing.output import note, print_json
from locus_memory.inspection.errors import UsageError
from locus_memory.inspection.memories import scoped_manager
from locus_memory.inspection.names import parse_namespace

if TYPE_CHECKING:
    from rich.console import Console

    from locus_memory.backends.base import Backend
    from locus_memory.integrations.mcp import HTTPOptions

__all__ = ["commands"]

_HOST, _PORT = "127.0.0.1", 8765
_CALLS = 600


class Tools(StrEnum):
    """The sets of tools, without an import of the server."""

    MEMORY = "memory"
    CONVERSATIONS = "conversations"
    DOCUMENTS = "documents"
    RESOURCES = "resources"
    GRAPH = "knowledge-graph"


_Tools = Annotated[
    list[str] | None,
    typer.Option(
        "--tools",
        metavar="SETS",
        help="memory, conversations, documents (these three by default), resources or"
        " knowledge-graph; several with commas, or repeated.",
    ),
]
_ReadOnly = Annotated[
    bool, typer.Option("--read-only", help="Leave out the tools that change something.")
]
_HTTP = Annotated[
    bool, typer.Option("--http", help="Serve streamable HTTP; stdin and stdout by default.")
]
_Host = Annotated[
    str, typer.Option("--host", metavar="HOST", help="With --http: address to listen at.")
]
_Port = Annotated[
    int, typer.Option("--port", min=0, max=65535, help="With --http: 0 takes a free port.")
]
_Names = Annotated[
    list[str] | None,
    typer.Option(
        "--allow-host", metavar="NAME", help="With --http: one more Host of requests; repeatable."
    ),
]
_Origins = Annotated[
    list[str] | None,
    typer.Option(
        "--allow-origin", metavar="URL", help="With --http: one more Origin of pages; repeatable."
    ),
]
_TokensFile = Annotated[
    Path | None,
    typer.Option("--tokens", metavar="FILE", help="With --http: TOML file of tokens and users."),
]
_CallLimit = Annotated[
    int, typer.Option("--calls", metavar="N", min=1, help="Calls a caller may make a minute.")
]
_Documents = Annotated[
    str, typer.Option("--documents", metavar="NAMESPACE", help="Namespace of the documents.")
]


def serve(
    session: Session,
    *,
    user: UserOption = None,
    tools: _Tools = None,
    read_only: _ReadOnly = False,
    http: _HTTP = False,
    host: _Host = _HOST,
    port: _Port = _PORT,
    tokens: _TokensFile = None,
    names: _Names = None,
    origins: _Origins = None,
    calls: _CallLimit = _CALLS,
    documents: _Documents = "documents",
    embedder: EmbedderOption = None,
    prefix: Prefix = DEFAULT_PREFIX,
) -> None:
    """Serve memories to an AI application, over the Model Context Protocol.

    Whose memories they are is fixed here: by --user, or for each token by the file of --tokens.
    Without --http, the application starts this command and talks to it over stdin and stdout.
    An address that others reach needs --tokens.
    """
    if not http:
        early = [written for name, written in session.given.items() if name in _OF_HTTP]
        if early:
            raise UsageError(f"{early[0]} needs --http")
        if session.as_json:
            raise UsageError("--json needs --http: stdout belongs to the protocol")
    if tokens is not None and (user is not None or read_only):
        raise UsageError("give --tokens, or --user and --read-only: a file of tokens has both")
    from locus_memory.integrations.mcp import HTTPOptions  # noqa: PLC0415 - help must be quick

    options = HTTPOptions(
        host=host,
        port=port,
        allowed_hosts=tuple(names or ()),
        allowed_origins=tuple(origins or ()),
        on_listening=partial(_tell, as_json=session.as_json),
    )
    session.run(
        partial(
            _serve,
            user=user,
            tools=_sets(tools or ()),
            read_only=read_only,
            options=options if http else None,
            tokens=tokens,
            calls=calls,
            documents=documents,
            embedder=embedder,
            prefix=prefix,
        ),
        create=True,
    )


def _sets(names: Iterable[str]) -> list[str]:
    """Return the sets of tools that options name, with or without commas.

    Raises:
        UsageError: One is unknown.
    """
    told = [each.strip() for name in names for each in name.split(",")]
    if wrong := [each for each in told if each not in [*Tools]]:
        raise UsageError(f"--tools is of {', '.join(Tools)}, not {quote(wrong[0])}")
    return told


def _tell(url: str, *, as_json: bool) -> None:
    """Print the URL of a server that listens."""
    if as_json:
        print_json({"url": url})
        sys.stdout.flush()
    else:
        note(f"listening at {url}")


_OF_HTTP = ("host", "port", "tokens", "names", "origins")
"""The options that have a meaning only with `--http`."""


async def _serve(
    backend: Backend,
    *,
    user: str | None,
    tools: list[Any],
    read_only: bool,
    options: HTTPOptions | None,
    tokens: Path | None,
    calls: int,
    documents: str,
    embedder: str | None,
    prefix: str,
) -> None:
    from locus_memory.integrations.mcp import (  # noqa: PLC0415 - help must be quick
        Caller,
        Limits,
        MemoryServer,
        TokenCallers,
    )
    from locus_memory.integrations.mcp.offers import DEFAULT_SETS  # noqa: PLC0415

    server = MemoryServer(
        backend,
        caller=Caller(user, read_only),
        callers=None if tokens is None else TokenCallers.read(tokens),
        namespace=parse_namespace(prefix),
        documents=parse_namespace(documents),
        embedder=None if embedder is None else open_embedder(embedder),
        limits=Limits(calls_per_minute=calls),
        tools=tools or DEFAULT_SETS,
    )
    async with server:
        await (server.serve_stdio() if options is None else server.serve_http(options))


def import_graph(
    session: Session,
    file: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="The memory.jsonl of the reference memory server."),
    ],
    *,
    user: UserOption = None,
    prefix: Prefix = DEFAULT_PREFIX,
) -> None:
    """Import the entities and relations of the reference memory server.

    What is there already stays: to repeat the import changes nothing. Lines that are no entity
    and no relation are skipped.
    """
    if not file.is_file():
        raise UsageError(f"there is no file {str(file)!r}")
    session.show(partial(_import, file=file, user=user, prefix=prefix), _render, create=True)


async def _import(backend: Backend, *, file: Path, user: str | None, prefix: str) -> dict[str, Any]:
    from locus_memory.integrations.mcp import KnowledgeGraph  # noqa: PLC0415 - help must be quick

    namespace = scoped_manager(backend.store, parse_namespace(prefix), user).namespace
    done = await KnowledgeGraph(backend.store, namespace).import_file(file)
    return {"user": user, **asdict(done)}


def _render(console: Console, *, document: dict[str, Any]) -> None:
    counts = (
        f"{document['entities']} entities, {document['relations']} relations and "
        f"{document['observations']} further observations imported"
    )
    console.out(counts, highlight=False)
    if document["skipped"]:
        shown = ", ".join(map(str, document["skipped"][:10]))
        console.out(f"lines skipped: {len(document['skipped'])} ({shown})", highlight=False)


commands = subcommands("mcp", serve, {"import": import_graph})
