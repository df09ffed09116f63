"""The distillate of a session, and the answer of a model to a distillation, with its parser."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar, cast

from locus_memory._internal.neutral import neutralise
from locus_memory.errors import InvalidArgumentError
from locus_memory.memory.extraction.answer import (
    CHANGE_SCHEMA,
    Answer,
    AnsweredChange,
    read_changes,
    read_importance,
    read_numbers,
    read_text,
    the_answer,
)
from locus_memory.memory.extraction.answer_json import read_documents
from locus_memory.memory.layers.episodes import MOST_NOTES, NOTE_KINDS, NoteKind
from locus_memory.memory.models import Memory, MemoryChange

__all__ = [
    "DISTILLATE_SCHEMA",
    "Distillate",
    "DistilledAnswer",
    "IdentityClaim",
    "NoteDraft",
    "parse_distillate",
]

_Value = TypeVar("_Value")

_PARTS: Final = ("changes", "notes", "identity")
_LONGEST_CLAIM: Final = 300
_MOST_CLAIMS: Final = 20
_LONGEST_READ: Final = 20_000
_LONGEST_ERROR: Final = 600


@dataclass(frozen=True, slots=True)
class NoteDraft:
    """A note without its moment.

    Attributes:
        text: One line.
        kind: What it tells.
        about: The date or the span that it is about; empty: none.
        importance: From 0 to 1; `None`: the extractor does not say.
        sources: As those of an `IdentityClaim`.
    """

    text: str
    kind: NoteKind = "event"
    about: str = ""
    importance: float | None = None
    sources: tuple[int, ...] = ()


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
        notes: The notes.
        identity: The identity facts.
    """

    changes: Sequence[MemoryChange | Memory] = ()
    notes: tuple[NoteDraft, ...] = ()
    identity: tuple[IdentityClaim, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DistilledAnswer:
    """The parsed parts of a model's answer.

    Attributes:
        changes: The changes that are valid.
        notes: The notes that are valid; their sources are numbers from 1.
        identity: The identity facts that are valid, likewise.
        refused: For each invalid part the reason; nothing of the answer is quoted.
    """

    changes: tuple[AnsweredChange, ...] = ()
    notes: tuple[NoteDraft, ...] = ()
    identity: tuple[IdentityClaim, ...] = ()
    refused: tuple[str, ...] = ()


def _schema() -> str:
    numbers = {"type": "array", "items": {"type": "integer", "minimum": 1}}
    note = {
        "type": "object",
        "required": ["text", "kind"],
        "properties": {
            "text": {"type": "string", "maxLength": _LONGEST_CLAIM},
            "kind": {"enum": list(NOTE_KINDS)},
            "about": {"type": ["string", "null"]},
            "importance": {"type": "number", "minimum": 0, "maximum": 1},
            "messages": numbers,
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
        "changes": {"type": "array", "items": CHANGE_SCHEMA},
        "notes": {"type": "array", "items": note},
        "identity": {"type": "array", "items": claim},
    }
    schema = {"type": "object", "required": list(properties), "properties": properties}
    return json.dumps(schema, separators=(",", ":"))


DISTILLATE_SCHEMA: Final = _schema()
"""The JSON Schema of an answer to a distillation."""


def parse_distillate(text: str, prompt: str = "") -> DistilledAnswer:
    """Return the parts of an answer to a distillation.

    The answer is a JSON object with `changes`, `notes` or `identity`, or the list of changes alone;
    thinking, a code fence or prose around it is ignored. A document that is in the prompt word for
    word is a quotation, not an answer. Each change, note and identity fact is parsed alone: a value
    that can be converted to a valid one is converted, and the others are refused.

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
    try:
        read = read_changes(fields.get("changes"))
    except InvalidArgumentError as error:
        read = Answer(refused=(str(error),))
    refused += read.refused
    notes = _listed("notes", fields.get("notes"), MOST_NOTES, _note, refused)
    identity = _listed("identity", fields.get("identity"), _MOST_CLAIMS, _claim, refused)
    if refused and not (read.changes or notes or identity):
        raise InvalidArgumentError("; ".join(refused)[:_LONGEST_ERROR])
    return DistilledAnswer(
        changes=read.changes, notes=notes, identity=identity, refused=tuple(refused)
    )


def _listed(
    name: str,
    value: Any,
    most: int,
    read: Callable[[Mapping[str, Any]], _Value],
    refused: list[str],
) -> tuple[_Value, ...]:
    """Return what can be read of a list of objects with a text, or of one; or of texts alone."""
    if value is None:
        return ()
    listed: list[Any] = value if isinstance(value, list) else [value]
    found: list[_Value] = []
    for number, each in enumerate(listed[:most]):
        fields = {"text": each} if isinstance(each, str) else each
        if not isinstance(fields, Mapping):
            refused.append(f"{name}.{number}: an object is expected")
            continue
        try:
            found.append(read(cast("Mapping[str, Any]", fields)))
        except InvalidArgumentError as error:
            refused.append(f"{name}.{number}{error}")
    return tuple(found)


def _note(fields: Mapping[str, Any]) -> NoteDraft:
    kind, about = fields.get("kind"), fields.get("about")
    return NoteDraft(
        text=_line(fields, _LONGEST_READ),
        kind=cast("NoteKind", kind.strip().lower() if isinstance(kind, str) else "event"),
        about=about.strip() if isinstance(about, str) else "",
        importance=read_importance(fields.get("importance")),
        sources=read_numbers(fields.get("messages")),
    )


def _claim(fields: Mapping[str, Any]) -> IdentityClaim:
    return IdentityClaim(_line(fields, _LONGEST_CLAIM), read_numbers(fields.get("messages")))


def _line(fields: Mapping[str, Any], longest: int) -> str:
    """Return the text of an object on one line.

    Raises:
        InvalidArgumentError: There is none; the message begins with the field.
    """
    text = neutralise(read_text(fields, "text", longest))
    if not text:
        raise InvalidArgumentError(".text: a text that is not empty is expected")
    return text
