"""What an extraction makes of sessions, and the parser of a model's answer to one; pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeVar, cast

from locus_memory._internal.neutral import neutralise
from locus_memory.chat.answer_json import read_documents
from locus_memory.errors import InvalidArgumentError
from locus_memory.memory.layers.episodes import NoteKind
from locus_memory.memory.models import Memory, MemoryChange, MemoryType
from locus_memory.memory.validity import VALIDITY

__all__ = ["Distillate", "NoteDraft", "parse_distillate"]

_Value = TypeVar("_Value")

_PARTS: Final = ("changes", "notes")
_OPS: Final = ("add", "update", "delete")
_LONGEST_KEY, _LONGEST_CONTENT, _LONGEST_NOTE, _LONGEST_ERROR = 120, 1000, 20_000, 600
_MOST: Final = 40
"""The most changes, and the most notes, of an answer."""

# The number of a message as the prompt writes it.
_NUMBER: Final = re.compile(r"\s*(?:message |#)?(\d{1,6})(?:\.0?)?\s*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class NoteDraft:
    """A note without its moment.

    Attributes:
        text: One line.
        kind: What it tells.
        about: The date or the span that it is about; empty: none.
        importance: From 0 to 1; `None`: the extractor does not say.
        sources: The positions of the source messages in the given sequence; for an answer of a
            model, their numbers from 1.
        valid_from: Since when it is true, a day or a moment, ISO 8601; empty: it does not say.
        valid_to: Until when, likewise; a day to its end.
    """

    text: str
    kind: NoteKind = "event"
    about: str = ""
    importance: float | None = None
    sources: tuple[int, ...] = ()
    valid_from: str = ""
    valid_to: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Distillate:
    """What one distillation makes of a session.

    Attributes:
        changes: The changes of the memories; their sources are as those of a note.
        notes: The notes.
        refused: For each part of a model's answer that is not valid the reason; nothing of the
            answer is quoted.
    """

    changes: Sequence[MemoryChange | Memory] = ()
    notes: tuple[NoteDraft, ...] = ()
    refused: tuple[str, ...] = ()


def parse_distillate(text: str, prompt: str = "") -> Distillate:
    """Return the parts of an answer to a distillation.

    The answer is a JSON object with `changes` or `notes`, or the list of changes alone; thinking,
    a code fence or prose around it is ignored. A document that requests something and is in the
    prompt word for word is a quotation, not an answer. Each change and note is parsed alone, at
    most 40 of each: a value that can be converted to a valid one is converted, and the others are
    refused.

    Args:
        text: The model's text.
        prompt: The prompt of the model.

    Raises:
        InvalidArgumentError: There is no answer, two answers differ, one has no end, or none of
            its parts is valid. The message tells how to repair it, and quotes nothing.
    """
    answer, refused = _answer(text, prompt), list[str]()
    changes = _each("changes", answer["changes"], _change, refused)
    notes = _each("notes", answer["notes"], _note, refused)
    if refused and not (changes or notes):
        raise InvalidArgumentError("; ".join(refused)[:_LONGEST_ERROR])
    return Distillate(changes=changes, notes=notes, refused=tuple(refused))


def _answer(text: str, prompt: str) -> Mapping[str, Any]:
    """Return the parts of the one answer in a text."""
    found, shown = read_documents(text), "".join(prompt.split())
    read = ((_parts(each.value), each.source) for each in found.documents)
    answers = [
        parts
        for parts, source in read
        if parts and not (any(parts.values()) and "".join(source.split()) in shown)
    ]
    if re.search(rf"[\"'](?:{'|'.join(_PARTS)})[\"']\s*:", found.rest):
        raise InvalidArgumentError("there is a JSON object in it that cannot be read to its end")
    if any(each != answers[-1] for each in answers):
        raise InvalidArgumentError("there are several JSON objects in it that differ: give one")
    # An empty list is an answer alone: in a text, it may mean anything.
    is_beside = any(each.value == [] for each in found.documents) and (
        found.rest.strip("\ufeff \n") or found.documents[1:]
    )
    if is_beside or not answers:
        raise InvalidArgumentError('there is no JSON object with a list "changes" in it')
    return answers[-1]


def _parts(value: Any) -> Mapping[str, Any] | None:
    """Return the parts of a document that is an answer: an object, or a list of changes alone."""
    if isinstance(value, list):
        listed: list[Any] = value
        is_answer = all(isinstance(each, dict) and "op" in each for each in listed)
        value = {"changes": listed} if is_answer else {}
    return {name: value.get(name) or [] for name in _PARTS} if {*_PARTS} & {*value} else None


def _each(
    name: str, said: Any, read: Callable[[Mapping[str, Any]], _Value], refused: list[str]
) -> tuple[_Value, ...]:
    """Return what can be read of a list of objects, or of one; a text is an object's text."""
    listed: list[Any] = said if isinstance(said, list) else [said]
    if len(listed) > _MOST:
        refused.append(f"{name}: at most {_MOST} are read")
    found: list[_Value] = []
    for number, each in enumerate(listed[:_MOST]):
        try:
            found.append(read(each if isinstance(each, dict) else {"text": each}))
        except InvalidArgumentError as error:
            refused.append(f"{name}.{number}{error}")
    return tuple(found)


def _change(fields: Mapping[str, Any]) -> MemoryChange:
    op = _word(fields, "op", _OPS)
    return MemoryChange(
        op=cast('Literal["add", "update", "delete"]', op),
        type=MemoryType(_word(fields, "type", tuple(MemoryType))),
        key=" ".join(_text(fields, "key", _LONGEST_KEY).split()),
        content="" if op == "delete" else _text(fields, "content", _LONGEST_CONTENT),
        importance=_importance(fields.get("importance")),
        sources=_numbers(fields.get("messages")),
        **_validity(fields),
    )


def _note(fields: Mapping[str, Any]) -> NoteDraft:
    about = fields.get("about")
    return NoteDraft(
        text=_text(fields, "text", _LONGEST_NOTE, neutralise),
        kind=cast("NoteKind", str(fields.get("kind", "event")).strip().lower()),
        about=about.strip() if isinstance(about, str) else "",
        importance=_importance(fields.get("importance")),
        sources=_numbers(fields.get("messages")),
        **_validity(fields),
    )


def _validity(fields: Mapping[str, Any]) -> dict[str, str]:
    told = ((name, fields.get(name)) for name in VALIDITY)
    return {name: each.strip() for name, each in told if isinstance(each, str)}


def _word(fields: Mapping[str, Any], name: str, known: tuple[str, ...]) -> str:
    word = str(fields.get(name)).strip().lower()
    if word not in known:
        raise InvalidArgumentError(f".{name}: one of {', '.join(known)} is expected")
    return word


def _text(
    fields: Mapping[str, Any], name: str, longest: int, clean: Callable[[str], str] = str.strip
) -> str:
    said = fields.get(name)
    text = clean(said) if isinstance(said, str) else ""
    if not 0 < len(text) <= longest:
        raise InvalidArgumentError(f".{name}: a text of 1 to {longest} characters is expected")
    return text


def _importance(said: Any) -> float | None:
    """Return a number from 0 to 1; `None` for any other value."""
    try:
        number = float("nan" if isinstance(said, bool) else said)
    except (TypeError, ValueError, OverflowError):
        return None
    return None if number != number else max(0.0, min(1.0, number))  # noqa: PLR0124 - NaN


def _numbers(said: Any) -> tuple[int, ...]:
    """Return the numbers of messages that a model wrote, in a list or alone."""
    listed: list[Any] = said if isinstance(said, list) else [said]
    texts = (str(each) for each in listed if isinstance(each, str | int | float))
    return tuple(int(found[1]) for found in map(_NUMBER.fullmatch, texts) if found)
