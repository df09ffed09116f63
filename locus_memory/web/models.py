"""What every request and answer is made of: the base models, pages, cursors and errors."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, Final, TypeVar

import orjson
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from locus_memory.errors import InvalidArgumentError
from locus_memory.memory.validity import Then, moment_in

__all__ = [
    "LIMIT",
    "Answer",
    "Asked",
    "ErrorAnswer",
    "ErrorDetail",
    "Labels",
    "Limit",
    "PageAnswer",
    "PageAsked",
    "ThenAsked",
    "ThreadAsked",
    "UserAsked",
    "cursor_key",
    "cursor_labels",
    "cursor_offset",
    "cut",
    "write_cursor",
]

LIMIT: Final = 1_000
"""The most entries of one page."""

_Entry = TypeVar("_Entry")

_FARTHEST: Final = 10_000_000
"""The farthest offset: what is skipped is read."""

Labels = Annotated[tuple[Annotated[str, Field(min_length=1)], ...], Field(min_length=1)]
"""A namespace: its labels. In a query, the parameter is repeated."""

Limit = Annotated[int, Field(ge=1, le=LIMIT)]

_LABELS: Final = TypeAdapter(Labels)
_KEY: Final = TypeAdapter(tuple[Annotated[str, Field(min_length=1)]])
_OFFSET: Final = TypeAdapter(tuple[Annotated[int, Field(ge=0, le=_FARTHEST)]])
_Place = TypeVar("_Place")


class Asked(BaseModel):
    """The parameters of a request."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


class UserAsked(Asked):
    """The parameters of a request about the memories of one user."""

    user: str | None = None
    """The user of the memories; without it, the memories without a user."""


class ThenAsked(UserAsked):
    """The parameters of a request that may be about an earlier moment."""

    as_of: datetime | None = None
    """What was known at this moment: the versions that were current then, and what was said until
    then. Without an offset it is UTC, and a day is its beginning."""
    at: datetime | None = None
    """What was true at this moment: from `valid_from` to `valid_to`, or else from its statement
    until it was superseded."""

    @property
    def then(self) -> Then | None:
        """The moment; `None`: now."""
        return Then.read(self.as_of, self.at, UTC)

    @property
    def moments(self) -> dict[str, Any]:
        """The moments by name, as the verbs of a manager take them."""
        given = (("as_of", self.as_of), ("at", self.at))
        return {name: moment_in(each, UTC) for name, each in given if each}


class PageAsked(Asked):
    """The parameters of a request for one page of a list."""

    cursor: str | None = None
    """The field `next` of the page before."""
    limit: Limit = 100


class ThreadAsked(Asked):
    """The parameters of a request about one thread."""

    thread: str = Field(min_length=1)


class Answer(BaseModel):
    """The document of an answer."""

    model_config = ConfigDict(frozen=True, from_attributes=True, use_attribute_docstrings=True)

    @property
    def etag(self) -> str | None:
        """The version of the document, for `ETag`; `None`: it has none."""
        return None


class PageAnswer(Answer):
    """A page of a list."""

    next: str | None
    """The cursor of the next page; `null`: this page is the last."""


class ErrorDetail(BaseModel):
    """An error."""

    model_config = ConfigDict(frozen=True, use_attribute_docstrings=True)

    type: str
    """The name of its class."""
    message: str
    """The reason and the remedy; it holds no stored value and no password."""
    expected: int | None = None
    """The version that a conditional write expected."""
    actual: int | None = None
    """The stored version."""


class ErrorAnswer(BaseModel):
    """The document of an answer with an error."""

    model_config = ConfigDict(frozen=True, use_attribute_docstrings=True)

    error: ErrorDetail
    current: dict[str, Any] | None = None
    """With status 412: what is stored now."""
    yours: dict[str, Any] | None = None
    """With status 412: what the request wanted to write."""


def cut(
    found: Sequence[_Entry], limit: int, place: Callable[[_Entry], str | int | tuple[str, ...]]
) -> tuple[list[_Entry], str | None]:
    """Return a page, and the cursor of the next one; `None`: it is the last.

    Args:
        found: The entries, one more than the page has if there is a next page.
        limit: How many entries the page has.
        place: Returns what the cursor after an entry names.
    """
    page = list(found[:limit])
    if len(found) <= limit:
        return page, None
    last = place(page[-1])
    return page, write_cursor(*last) if isinstance(last, tuple) else write_cursor(last)


def write_cursor(*place: str | int) -> str:
    """Return the cursor of a place; a client passes it back unchanged."""
    return urlsafe_b64encode(orjson.dumps(place)).decode().rstrip("=")


def cursor_labels(text: str | None) -> tuple[str, ...] | None:
    """Return the labels that a cursor names; `None` if there is no cursor.

    Raises:
        InvalidArgumentError: It is not such a cursor.
    """
    return None if text is None else _place(text, _LABELS)


def cursor_key(text: str | None) -> str | None:
    """Return the key that a cursor names, as `cursor_labels`."""
    return None if text is None else _place(text, _KEY)[0]


def cursor_offset(text: str | None) -> int:
    """Return the offset that a cursor names; 0 if there is no cursor.

    Raises:
        InvalidArgumentError: It is not such a cursor.
    """
    return 0 if text is None else _place(text, _OFFSET)[0]


def _place(text: str, kind: TypeAdapter[_Place]) -> _Place:
    try:
        place = urlsafe_b64decode(text.encode("ascii") + b"=" * (-len(text) % 4))
        return kind.validate_json(place, strict=True)
    except ValueError:
        raise InvalidArgumentError(
            "cursor is the field 'next' of the page before, unchanged"
        ) from None
