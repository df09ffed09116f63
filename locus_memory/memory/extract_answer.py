"""What a model answers to an extraction: its schema, and reading it leniently but validated."""

from __future__ import annotations

import json
import re
from itertools import islice
from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from locus_memory.errors import InvalidArgumentError
from locus_memory.memory.models import MemoryType

__all__ = ["SCHEMA", "AnsweredChange", "parse_answer"]

_LONGEST_KEY, _LONGEST_CONTENT = 120, 1000
_LONGEST_ERROR = 600
# How many brackets are tried as the start of the answer, in prose that has more of them.
_ATTEMPTS = 20
_START: Final = re.compile(r"[{\[]")


class AnsweredChange(BaseModel):
    """One change as a model writes it.

    Attributes:
        op: What is to be done.
        type: The memory's type.
        key: The memory's key.
        content: The fact; empty for a delete.
        importance: From 0 to 1.
        messages: The numbers of the messages that say so, from 1.
    """

    model_config = ConfigDict(frozen=True, str_strip_whitespace=True)

    op: Literal["add", "update", "delete"]
    type: MemoryType
    key: str = Field(min_length=1, max_length=_LONGEST_KEY)
    content: str = Field("", max_length=_LONGEST_CONTENT)
    importance: float | None = Field(None, ge=0, le=1)
    messages: tuple[int, ...] = ()


class _Answer(BaseModel):
    changes: tuple[AnsweredChange, ...]


def _schema() -> str:
    properties = {
        "op": {"enum": ["add", "update", "delete"]},
        "type": {"enum": [kind.value for kind in MemoryType]},
        "key": {"type": "string", "maxLength": _LONGEST_KEY},
        "content": {"type": "string", "maxLength": _LONGEST_CONTENT},
        "importance": {"type": "number", "minimum": 0, "maximum": 1},
        "messages": {"type": "array", "items": {"type": "integer", "minimum": 1}},
    }
    change = {"type": "object", "required": ["op", "type", "key"], "properties": properties}
    changes = {"changes": {"type": "array", "items": change}}
    schema = {"type": "object", "required": ["changes"], "properties": changes}
    return json.dumps(schema, separators=(",", ":"))


SCHEMA: Final = _schema()
"""The JSON Schema of an answer."""


def parse_answer(text: str) -> tuple[AnsweredChange, ...]:
    """Return the changes an answer asks for.

    The answer is a JSON object with `changes`, or that list alone; a code fence or prose around
    it does no harm.

    Raises:
        InvalidArgumentError: It is not; the message says what to mend, and quotes nothing.
    """
    document = _find_json(text)
    if document is None:
        raise InvalidArgumentError('there is no JSON object with a list "changes" in it')
    try:
        changes = _Answer.model_validate(document).changes
    except ValidationError as error:
        raise InvalidArgumentError(_describe(error)) from None
    for number, change in enumerate(changes):
        if change.op != "delete" and not change.content:
            raise InvalidArgumentError(f"changes.{number}.content: must not be empty")
    return changes


def _describe(error: ValidationError) -> str:
    problems = error.errors(include_url=False, include_context=False, include_input=False)
    lines = (f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in problems)
    return "; ".join(lines)[:_LONGEST_ERROR]


def _find_json(text: str) -> Any:
    """Return the first JSON document in `text` that may be the answer, or `None`."""
    if text.strip() == "[]":
        return {"changes": []}
    decoder = json.JSONDecoder()
    for found in islice(_START.finditer(text), _ATTEMPTS):
        try:
            document, _end = decoder.raw_decode(text, found.start())
        except (ValueError, RecursionError):
            continue
        if isinstance(document, dict) and "changes" in document:
            return document
        if isinstance(document, list) and document and all(map(_is_change, document)):
            return {"changes": document}
    return None


def _is_change(document: object) -> bool:
    return isinstance(document, dict) and "op" in document
