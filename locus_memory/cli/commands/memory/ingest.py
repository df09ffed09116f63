"""The command `ingest`: conversations of the past become episodes and memories."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import orjson
import typer

from locus_memory.cli.options.common import AsJson, Url
from locus_memory.cli.options.memories import DEFAULT_PREFIX, Prefix, UserOption, open_manager
from locus_memory.cli.options.models import BaseUrlOption, ModelOption, open_model
from locus_memory.cli.options.session import Session
from locus_memory.cli.printing.outcome import CommandError, UsageError
from locus_memory.cli.printing.tables import Cell, print_table

if TYPE_CHECKING:
    from rich.console import Console

    from locus_memory.backends.base import Backend
    from locus_memory.memory.extraction.extractors import LLMExtractor

__all__ = ["ingest"]

_COUNTS = ("turns", "episodes", "facts", "pending")
_FIELDS = ("agent_id", "conversation_id", "session_date", "turns")

_Part = dict[str, Any]


def ingest(
    context: typer.Context,
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="Turns as JSON or JSON Lines; - reads stdin.")
    ],
    *,
    user: UserOption = None,
    agent: Annotated[
        str, typer.Option("--agent", metavar="ID", help="Agent, if the file names none.")
    ] = "agent",
    conversation: Annotated[
        str | None,
        typer.Option(
            "--conversation", metavar="ID", help="Conversation; by default, the name of the file."
        ),
    ] = None,
    date: Annotated[
        str | None,
        typer.Option("--date", metavar="DATE", help="Date of the turns, ISO 8601; now by default."),
    ] = None,
    skip_extraction: Annotated[
        bool, typer.Option("--skip-extraction", help="Only record the turns in the transcript.")
    ] = False,
    model: ModelOption = None,
    base_url: BaseUrlOption = None,
    prefix: Prefix = DEFAULT_PREFIX,
    url: Url = None,
    as_json: AsJson = False,
) -> None:
    """Turn conversations of the past into episodes and memories.

    A turn is an object with the texts "user" and "assistant". Without --model, rules distil the
    turns. Turns that were ingested before are left out.
    """
    session = Session.of(context, url, as_json=as_json)
    if base_url is not None and model is None:
        raise UsageError("--base-url needs --model")
    named = conversation or ("stdin" if file == "-" else Path(file).stem)
    defaults = {"agent_id": agent, "conversation_id": named, "session_date": date}
    parts = [{**defaults, **part} for part in _read(file)]
    extractor = None if model is None else _extractor(model, base_url)
    work = partial(
        _ingest,
        parts=parts,
        extractor=extractor,
        user=user,
        prefix=prefix,
        skip_extraction=skip_extraction,
    )
    document = session.run(work, create=True)
    session.answer(document, partial(_render, document=document))
    if document["pending"]:
        raise CommandError("turns wait, because they could not be distilled: run it again")


def _extractor(model: str, base_url: str | None) -> LLMExtractor:
    from locus_memory.memory.extraction.extractors import LLMExtractor  # noqa: PLC0415 - help must be quick

    return LLMExtractor(open_model(model, base_url))


def _read(name: str) -> list[_Part]:
    """Return the sessions of a file: lists of turns with what the file says about them."""
    source = "stdin" if name == "-" else name
    content = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    values = _values(content, source)
    if not values:
        raise CommandError(f"{source}: there are no turns in it")
    if all(isinstance(value, dict) and "turns" in value for value in values):
        for value in values:
            unknown = [key for key in value if key not in _FIELDS]
            if unknown:
                raise CommandError(
                    f"{source}: unknown field {unknown[0]!r}; known: {', '.join(_FIELDS)}"
                )
        return cast("list[_Part]", values)
    return [{"turns": values}]


def _values(content: bytes, source: str) -> list[Any]:
    try:
        value: Any = orjson.loads(content)
    except orjson.JSONDecodeError:
        return [
            _line(line, number, source)
            for number, line in enumerate(content.splitlines(), 1)
            if line.strip()
        ]
    return value if isinstance(value, list) else [value]


def _line(line: bytes, number: int, source: str) -> Any:
    try:
        return orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise CommandError(f"{source}, line {number}: not JSON: {error}") from None


async def _ingest(
    backend: Backend,
    *,
    parts: list[_Part],
    extractor: LLMExtractor | None,
    user: str | None,
    prefix: str,
    skip_extraction: bool,
) -> dict[str, Any]:
    from locus_memory.memory.sessions.ingestion import marked_turns, moment_of  # noqa: PLC0415
    from locus_memory.store.item import check_key  # noqa: PLC0415

    for part in parts:
        # Nothing is written before everything is valid.
        check_key(part["agent_id"])
        check_key(part["conversation_id"])
        marked_turns(part["turns"], moment_of(part["session_date"], "")[0])
    manager = open_manager(backend.store, prefix, extractor, extract_mode="session_end")
    scoped = manager if user is None else manager.for_user(user)
    rows: list[dict[str, Any]] = []
    for part in parts:
        done = await scoped.ingest(
            part["agent_id"],
            part["conversation_id"],
            part["turns"],
            session_date=part["session_date"],
            skip_extraction=skip_extraction,
        )
        rows.append({name: part[name] for name in _FIELDS if name != "turns"} | dict(done))
    sums = {name: sum(row[name] for row in rows) for name in _COUNTS}
    return {"user": user, "conversations": rows, **sums}


def _render(console: Console, document: dict[str, Any]) -> None:
    rows: list[list[Cell]] = [
        [row["conversation_id"], *(row[name] for name in _COUNTS)]
        for row in document["conversations"]
    ]
    print_table(console, ["conversation", *(f">{name}" for name in _COUNTS)], rows)
