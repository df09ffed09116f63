"""The answer of a model to an extraction: its schema, and a lenient parser that validates it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, cast

from locus_memory.errors import InvalidArgumentError
from locus_memory.memory.extraction.answer_json import Reading
from locus_memory.memory.models import MemoryType

__all__ = [
    "CHANGE_SCHEMA",
    "Answer",
    "AnsweredChange",
    "read_changes",
    "read_importance",
    "read_numbers",
    "read_text",
    "the_answer",
]

Op = Literal["add", "update", "delete"]

_OPS: Final = ("add", "update", "delete")
_LONGEST_KEY, _LONGEST_CONTENT = 120, 1000
_GRADES: Final = {"critical": 1.0, "high": 0.8, "medium": 0.5, "normal": 0.5, "low": 0.2}
# The number of a message as the prompt writes it; `m1` is the number of a memory.
_NUMBER: Final = re.compile(r"(?:message |#)?(\d{1,6})\.?", re.IGNORECASE)
_PERCENT: Final = re.compile(r"(\d{1,3}) ?%")
_FENCE: Final = re.compile(r"```\w*")


@dataclass(frozen=True, slots=True)
class AnsweredChange:
    """One change in the form in which a model writes it.

    Attributes:
        op: The operation.
        type: The memory's type.
        key: The memory's key.
        content: The fact; empty for a delete.
        importance: From 0 to 1.
        messages: The numbers of the source messages, from 1.
    """

    op: Op
    type: MemoryType
    key: str
    content: str = ""
    importance: float | None = None
    messages: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Answer:
    """The parsed parts of an answer.

    Attributes:
        changes: The changes that are valid.
        refused: For each other change the reason; nothing of the answer is quoted.
    """

    changes: tuple[AnsweredChange, ...] = ()
    refused: tuple[str, ...] = ()


def _change_schema() -> dict[str, Any]:
    properties = {
        "op": {"enum": list(_OPS)},
        "type": {"enum": [kind.value for kind in MemoryType]},
        "key": {"type": "string", "maxLength": _LONGEST_KEY},
        "content": {"type": "string", "maxLength": _LONGEST_CONTENT},
        "importance": {"type": "number", "minimum": 0, "maximum": 1},
        "messages": {"type": "array", "items": {"type": "integer", "minimum": 1}},
    }
    return {"type": "object", "required": ["op", "type", "key"], "properties": properties}


CHANGE_SCHEMA: Final = _change_schema()
"""The JSON Schema of one change."""


def read_changes(changes: Any) -> Answer:
    """Return the changes of an answer, each parsed alone; one object is a list of one.

    Raises:
        InvalidArgumentError: They are not a list.
    """
    if changes is None:
        return Answer()
    if isinstance(changes, Mapping):
        changes = [changes]
    if not isinstance(changes, list):
        raise InvalidArgumentError("changes: a list is expected")
    listed: list[Any] = changes
    return _each_read(listed)


def the_answer(found: Reading, prompt: str, names: Sequence[str]) -> Any:
    """Return the one answer among the documents: an object, or a list of changes alone.

    A document that requests something and is in the prompt word for word is a quotation.

    Args:
        found: The documents.
        prompt: The prompt of the model.
        names: The names of the parts of an answer, the changes first.

    Raises:
        InvalidArgumentError: There is no answer, two answers differ, or one has no end.
    """
    shown = "".join(prompt.split())
    answers = [
        document.value
        for document in found.documents
        if _is_answer(document.value, names)
        and not (
            any(_parts_of(document.value, names)) and "".join(document.source.split()) in shown
        )
    ]
    # With a space inside the brackets, it is an open box of a checklist.
    is_empty = any(document.source == "[]" for document in found.documents)
    if re.search(rf"[\"'](?:{'|'.join(names)})[\"']\s*:", found.rest):
        raise InvalidArgumentError("there is a JSON object in it that cannot be read to its end")
    if not answers and len(found.documents) == 1 and is_empty and not _said(found.rest):
        return []
    if not answers:
        raise InvalidArgumentError(f'there is no JSON object with a list "{names[0]}" in it')
    listed = [_parts_of(answer, names) for answer in answers]
    if any(each != listed[-1] for each in listed) or (is_empty and any(listed[-1])):
        raise InvalidArgumentError("there are several JSON objects in it that differ: give one")
    return answers[-1]


def _is_answer(value: Any, names: Sequence[str]) -> bool:
    if isinstance(value, dict):
        return any(name in value for name in names)
    return bool(value) and all(isinstance(each, dict) and "op" in each for each in value)


def _parts_of(answer: Any, names: Sequence[str]) -> tuple[Any, ...]:
    if isinstance(answer, list):
        return (answer, *(None for _ in names[1:]))
    return tuple(answer.get(name) for name in names)


def _said(rest: str) -> str:
    return _FENCE.sub("", rest).strip().strip("\ufeff")


def _each_read(changes: list[Any]) -> Answer:
    read: list[AnsweredChange] = []
    refused: list[str] = []
    for number, change in enumerate(changes):
        try:
            read.append(_read(change))
        except InvalidArgumentError as error:
            refused.append(f"changes.{number}{error}")
    return Answer(tuple(read), tuple(refused))


def _read(change: Any) -> AnsweredChange:
    """Return one change.

    Raises:
        InvalidArgumentError: It is not a change; the message begins with the field.
    """
    if not isinstance(change, dict):
        raise InvalidArgumentError(": an object is expected")
    fields = cast("dict[str, Any]", change)
    op = _word(fields, "op", _OPS)
    return AnsweredChange(
        op=cast("Op", op),
        type=MemoryType(_word(fields, "type", tuple(MemoryType))),
        key=read_text(fields, "key", _LONGEST_KEY),
        content="" if op == "delete" else read_text(fields, "content", _LONGEST_CONTENT),
        importance=read_importance(fields.get("importance")),
        messages=read_numbers(fields.get("messages")),
    )


def _word(fields: Mapping[str, Any], name: str, known: tuple[str, ...]) -> str:
    said = fields.get(name)
    word = said.strip().lower() if isinstance(said, str) else ""
    if word not in known:
        raise InvalidArgumentError(f".{name}: one of {', '.join(known)} is expected")
    return word


def read_text(fields: Mapping[str, Any], name: str, longest: int) -> str:
    """Return a text of an object.

    Raises:
        InvalidArgumentError: It is empty, too long or not a text; the message begins with the
            field.
    """
    said = fields.get(name)
    if not isinstance(said, str) or not said.strip():
        raise InvalidArgumentError(f".{name}: a text that is not empty is expected")
    if len(said.strip()) > longest:
        raise InvalidArgumentError(f".{name}: at most {longest} characters are expected")
    return said.strip()


def read_importance(said: Any) -> float | None:
    """Return a number from 0 to 1; `None` for any other value."""
    if isinstance(said, str):
        word = said.strip().lower()
        percent = _PERCENT.fullmatch(word)
        said = int(percent[1]) / 100 if percent else _GRADES.get(word) or _number(word)
    if isinstance(said, bool) or not isinstance(said, int | float) or said != said:  # noqa: PLR0124 - NaN
        return None
    # Not float() first: an integer may be too large for it.
    return float(max(0, min(1, said)))


def _number(word: str) -> float | None:
    try:
        return float(word)
    except ValueError:
        return None


def read_numbers(said: Any) -> tuple[int, ...]:
    """Return the numbers of messages that a model wrote, in a list or alone."""
    listed: list[Any] = said if isinstance(said, list) else [said]
    return tuple(number for each in listed if (number := _place(each)) is not None)


def _place(said: Any) -> int | None:
    if isinstance(said, bool) or not isinstance(said, int | float | str):
        return None
    if isinstance(said, str):
        named = _NUMBER.fullmatch(said.strip())
        return int(named[1]) if named else None
    if isinstance(said, float):
        return int(said) if said.is_integer() else None
    return said
