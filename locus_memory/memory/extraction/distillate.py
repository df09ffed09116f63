"""The distillate of a session, and the answer of a model to a distillation, with its parser."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar, cast

from locus_memory._internal.neutral import neutralise
from locus_memory.errors import InvalidArgumentError
from locus_memory.memory.extraction.answer import (
    CHANGE_SCHEMA,
    AnsweredChange,
    read_changes,
    read_importance,
    read_numbers,
    read_text,
    the_answer,
)
from locus_memory.memory.extraction.answer_json import read_documents
from locus_memory.memory.models import Memory, MemoryChange

__all__ = [
    "DISTILLATE_SCHEMA",
    "DRAFT_LISTS",
    "Distillate",
    "DistilledAnswer",
    "EpisodeDraft",
    "IdentityClaim",
    "parse_distillate",
]

_Value = TypeVar("_Value")

_PARTS: Final = ("changes", "episode", "identity")
_LONGEST_SUMMARY, _LONGEST_ENTRY, _LONGEST_CLAIM = 600, 300, 300
_MOST_CLAIMS: Final = 20
_LONGEST_READ: Final = 20_000
_LONGEST_ERROR: Final = 600

DRAFT_LISTS: Final = {"topics": 8, "entities": 12, "decisions": 10, "action_items": 10}
"""The lists of an episode, and the most entries of each."""

# A list that a model wrote as one text, and the bullet before an entry of it.
_SEPARATOR: Final = re.compile(r";|\n")
_BULLET: Final = re.compile(r"\s*(?:[-*\u2022]|\d+[.)])\s+")


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeDraft:
    """An episode without its place and its moments.

    Attributes:
        summary: 1 to 3 sentences.
        topics: The subjects.
        entities: The names.
        decisions: The decisions.
        action_items: The open tasks.
        salience: From 0 to 1.
    """

    summary: str
    topics: tuple[str, ...] = ()
    entities: tuple[str, ...] = ()
    decisions: tuple[str, ...] = ()
    action_items: tuple[str, ...] = ()
    salience: float = 0.5


@dataclass(frozen=True, slots=True)
class IdentityClaim:
    """A sentence about who the user is, to be true for years.

    Attributes:
        text: One line.
        sources: The positions of the source messages in the given sequence; for an answer of a
            model, their numbers from 1.
    """

    text: str
    sources: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Distillate:
    """What one distillation makes of a session.

    Attributes:
        changes: The changes of the memories.
        episode: The episode; `None` if nothing is worth it.
        identity: The identity facts.
    """

    changes: Sequence[MemoryChange | Memory] = ()
    episode: EpisodeDraft | None = None
    identity: tuple[IdentityClaim, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DistilledAnswer:
    """The parsed parts of a model's answer.

    Attributes:
        changes: The changes that are valid.
        episode: The episode; `None` if the answer has none, or an invalid one.
        identity: The identity facts that are valid; their sources are numbers from 1.
        refused: For each invalid part the reason; nothing of the answer is quoted.
    """

    changes: tuple[AnsweredChange, ...] = ()
    episode: EpisodeDraft | None = None
    identity: tuple[IdentityClaim, ...] = ()
    refused: tuple[str, ...] = ()


def _schema() -> str:
    def texts(most: int) -> dict[str, Any]:
        entry = {"type": "string", "maxLength": _LONGEST_ENTRY}
        return {"type": "array", "maxItems": most, "items": entry}

    numbers = {"type": "array", "items": {"type": "integer", "minimum": 1}}
    episode = {
        "type": ["object", "null"],
        "required": ["summary"],
        "properties": {
            "summary": {"type": "string", "maxLength": _LONGEST_SUMMARY},
            **{name: texts(most) for name, most in DRAFT_LISTS.items()},
            "salience": {"type": "number", "minimum": 0, "maximum": 1},
        },
    }
    claim = {
        "type": "object",
        "required": ["text"],
        "properties": {
            "text": {"type": "string", "maxLength": _LONGEST_CLAIM},
            "messages": numbers,
        },
    }
    properties = {
        "episode": episode,
        "changes": {"type": "array", "items": CHANGE_SCHEMA},
        "identity": {"type": "array", "items": claim},
    }
    schema = {"type": "object", "required": list(properties), "properties": properties}
    return json.dumps(schema, separators=(",", ":"))


DISTILLATE_SCHEMA: Final = _schema()
"""The JSON Schema of an answer to a distillation."""


def parse_distillate(text: str, prompt: str = "") -> DistilledAnswer:
    """Return the parts of an answer to a distillation.

    It is read like the answer to an extraction, see `parse_answer`. The episode, each change and
    each identity fact are parsed alone: an invalid one is refused, and the others are kept.

    Args:
        text: The model's text.
        prompt: The prompt of the model.

    Raises:
        InvalidArgumentError: There is no answer, two answers differ, one has no end, or none of
            its parts is valid. The message tells how to repair it, and quotes nothing.
    """
    answer = the_answer(read_documents(text), prompt, _PARTS)
    fields: Mapping[str, Any] = answer if isinstance(answer, dict) else {"changes": answer}
    refused: list[str] = []
    read = _part(refused, read_changes, fields.get("changes"))
    refused += () if read is None else read.refused
    episode = _part(refused, _draft, fields.get("episode"))
    identity = _claims(fields.get("identity"), refused)
    changes = () if read is None else read.changes
    if refused and not (changes or episode or identity):
        raise InvalidArgumentError("; ".join(refused)[:_LONGEST_ERROR])
    return DistilledAnswer(
        changes=changes,
        episode=episode,
        identity=identity,
        refused=tuple(refused),
    )


def _part(refused: list[str], read: Callable[[Any], _Value], value: Any) -> _Value | None:
    try:
        return read(value)
    except InvalidArgumentError as error:
        refused.append(str(error))
        return None


def _draft(value: Any) -> EpisodeDraft | None:
    """Return the episode; a text alone is its summary.

    Raises:
        InvalidArgumentError: It is not an episode.
    """
    if value is None:
        return None
    fields = {"summary": value} if isinstance(value, str) else value
    if not isinstance(fields, Mapping):
        raise InvalidArgumentError("episode: an object or null is expected")
    named = cast("Mapping[str, Any]", fields)
    try:
        summary = neutralise(read_text(named, "summary", _LONGEST_READ))
    except InvalidArgumentError as error:
        raise InvalidArgumentError(f"episode{error}") from None
    if not summary:
        raise InvalidArgumentError("episode.summary: a text that is not empty is expected")
    salience = read_importance(named.get("salience"))
    lists = {name: _entries(named.get(name)) for name in DRAFT_LISTS}
    return EpisodeDraft(summary=summary, salience=0.5 if salience is None else salience, **lists)


def _entries(value: Any) -> tuple[str, ...]:
    if isinstance(value, str):
        value = [_BULLET.sub("", entry, count=1) for entry in _SEPARATOR.split(value)]
    if not isinstance(value, list):
        return ()
    listed: list[Any] = value
    return tuple(each.strip() for each in listed if isinstance(each, str) and each.strip())


def _claims(value: Any, refused: list[str]) -> tuple[IdentityClaim, ...]:
    if value is None:
        return ()
    listed: list[Any] = value if isinstance(value, list) else [value]
    found: list[IdentityClaim] = []
    for number, each in enumerate(listed[:_MOST_CLAIMS]):
        try:
            found.append(_claim(each))
        except InvalidArgumentError as error:
            refused.append(f"identity.{number}{error}")
    return tuple(found)


def _claim(value: Any) -> IdentityClaim:
    """Return an identity fact, also from a text alone.

    Raises:
        InvalidArgumentError: It is not one; the message begins with the field.
    """
    fields = {"text": value} if isinstance(value, str) else value
    if not isinstance(fields, Mapping):
        raise InvalidArgumentError(": an object is expected")
    named = cast("Mapping[str, Any]", fields)
    text = neutralise(read_text(named, "text", _LONGEST_CLAIM))
    if not text:
        raise InvalidArgumentError(".text: a text that is not empty is expected")
    return IdentityClaim(text, read_numbers(named.get("messages")))
