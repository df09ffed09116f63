"""The option `--filter` of the checkpoint commands: a filter on metadata."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Annotated, Any

import orjson
import typer

from locus_memory.cli.options.common import parse_object
from locus_memory.inspection.errors import UsageError
from locus_memory.transfer.chats.exact_json import InexactNumberError, parse_json

__all__ = ["Condition", "FilterOption", "parse_filters"]

Condition = Callable[[Mapping[str, Any]], bool]
"""Whether the metadata of a checkpoint matches."""

FilterOption = Annotated[
    list[str] | None,
    typer.Option(
        "--filter",
        metavar="FILTER",
        help="Metadata filter: NAME=VALUE or a JSON filter. If repeated, all must match.",
    ),
]


def parse_filters(texts: Sequence[str]) -> Condition:
    """Return one condition that combines all filters; without filters, everything matches.

    Args:
        texts: Each is `NAME=VALUE`, where the value is JSON or else text, or a JSON filter.

    Raises:
        UsageError: A text is neither.
        InvalidFilterError: A JSON filter has an unknown operator or an invalid operand.
    """
    from locus_memory.store.filters import matches, parse_filter  # noqa: PLC0415 - help must be quick

    if not texts:
        return lambda _metadata: True
    condition = parse_filter({"$and": [_document(text) for text in texts]})
    return partial(matches, condition, None)


def _document(text: str) -> dict[str, Any]:
    if text.lstrip().startswith("{"):
        return parse_object(text, "--filter") or {}
    name, separator, value = text.partition("=")
    if not separator or not name:
        raise UsageError(
            f"--filter takes NAME=VALUE or a JSON object, such as turn=3 or "
            f'\'{{"turn": {{"$gt": 3}}}}\', not {text[:60]!r}'
        )
    return {name: {"$eq": _value(value)}}


def _value(text: str) -> Any:
    try:
        return parse_json(text)
    except InexactNumberError as error:
        raise UsageError(f"--filter: {error}") from None
    except orjson.JSONDecodeError:
        return text
