"""Options that several commands share, and the parsing of their values."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Any

import orjson
import typer

from locus_memory.inspection.errors import UsageError
from locus_memory.transfer.chats.exact_json import parse_json

__all__ = [
    "AsJson",
    "Limit",
    "MinScore",
    "Offset",
    "Url",
    "options_given",
    "parse_age",
    "parse_object",
]

Url = Annotated[
    str | None,
    typer.Option("--url", metavar="URL", help="Database URL, such as sqlite:./agent.db."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]


def _bounded(limit: int) -> int:
    # No database accepts a larger number.
    return min(limit, 2**53)


Limit = Annotated[
    int,
    typer.Option(
        "--limit", metavar="N", min=1, help="Maximum number of results.", callback=_bounded
    ),
]

Offset = Annotated[
    int,
    typer.Option(
        "--offset", metavar="N", min=0, help="Number of results to skip.", callback=_bounded
    ),
]


def _relevance(least: float | None) -> float | None:
    if least is not None and not 0 <= least <= 1:
        raise UsageError(f"--min-score is a number from 0 to 1, not {least:g}")
    return least


MinScore = Annotated[
    float | None,
    typer.Option(
        "--min-score",
        metavar="X",
        help="Lowest relevance of a hit, from 0 to 1.",
        callback=_relevance,
    ),
]


def parse_age(text: str) -> timedelta:
    """Return the duration that `90s`, `45m`, `12h`, `30d` or `2w` stands for.

    Raises:
        UsageError: The text is not an age, or the age is too large.
    """
    from locus_memory.errors import InvalidArgumentError  # noqa: PLC0415 - help must be quick
    from locus_memory.retention.ages import read_age  # noqa: PLC0415 - the same

    try:
        return read_age(text)
    except InvalidArgumentError as error:
        raise UsageError(str(error)) from None


def parse_object(text: str | None, option: str) -> dict[str, Any] | None:
    """Return the JSON object given to an option; `None` if the option is absent.

    Raises:
        UsageError: The text is not a JSON object.
    """
    if text is None:
        return None
    try:
        value = parse_json(text)
    except orjson.JSONDecodeError as error:
        raise UsageError(f"{option} takes a JSON object: {error}") from None
    if not isinstance(value, dict):
        raise UsageError(
            f'{option} takes a JSON object, such as \'{{"kind": "note"}}\', not {text[:60]!r}'
        )
    return value


def options_given(context: typer.Context) -> dict[str, str]:
    """Return what the command line has of a command, as a user writes it, by parameter."""
    given: dict[str, str] = {}
    for each in context.command.params:
        source = context.get_parameter_source(str(each.name))
        if source is not None and source.name == "COMMANDLINE":
            given[str(each.name)] = max(each.opts, key=len)
    return given
