"""The JSON documents in a model's answer, without its thinking; pure."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from locus_memory._internal.lazy import compiled_later
from locus_memory.errors import InvalidArgumentError

__all__ = ["Document", "Reading", "read_documents"]

_THOUGHT: Final = "think(?:ing)?|thoughts?|reason(?:ing)?|reflection|analysis|scratchpad"
_TAG: Final = rf"(?:{_THOUGHT})(?:\s[^<>\[\]]*)?[>\]\u25b7]"
_FENCE: Final = r"^[ \t]*`{3,}[ \t]*"
# A bracket is a possible start of a document; one with a space in it is a box of a checklist.
_MARK: Final = compiled_later(
    re.compile,
    rf"(?P<open>[<\[\u25c1]{_TAG})|(?P<close>[<\[\u25c1]/{_TAG})"
    rf"|(?P<thought>{_FENCE}(?:{_THOUGHT})\b)|(?P<fence>{_FENCE}\w+)|(?P<end>{_FENCE})"
    r"|(?P<bracket>\{(?=\s*[\"}])|\[(?=\]|\s*\{))",
    re.IGNORECASE | re.MULTILINE,
)
# What each mark adds to the depth of thinking that began with a tag, and with a code fence.
_TAGS: Final = {"open": 1, "close": -1}
_FENCES: Final = {"thought": 1, "fence": 1, "end": -1}

# The limits of failed attempts, each of which reads as far as it can: in all, and with repairs.
_ATTEMPTS, _MENDED_ATTEMPTS = 200, 10

# One without an end takes all that follows, so that a text is passed over once.
_STRING: Final = r'"(?:[^"\\]|\\.)*"?'
_COMMENT: Final = compiled_later(re.compile, rf"{_STRING}|//[^\n]*|/\*.{{0,1000}}?\*/", re.DOTALL)
_LOOSE: Final = compiled_later(
    re.compile, rf"{_STRING}|,(?=\s*[}}\]])|\b(?:True|False|None)\b", re.DOTALL
)
_PYTHON: Final = {"True": "true", "False": "false", "None": "null"}
_decode: Final = json.JSONDecoder(strict=False).raw_decode


@dataclass(frozen=True, slots=True)
class Document:
    """A JSON document in an answer.

    Attributes:
        value: The document.
        source: Its text.
    """

    value: Any
    source: str


@dataclass(frozen=True, slots=True)
class Reading:
    """The content of an answer without its thinking.

    Attributes:
        documents: The complete JSON objects, and lists of objects, in order.
        rest: The text between them.
    """

    documents: list[Document]
    rest: str


def read_documents(text: str) -> Reading:
    """Read an answer from its beginning to its end.

    Thinking is the text between tags such as `<think>` and `</think>`, nested ones included,
    after a tag that is never closed, before one that was never opened, and in a code fence
    with such a name. A tag within a string of a document is ignored. Trailing commas, comments
    and Python's words for JSON constants are accepted in a document.

    Raises:
        InvalidArgumentError: The text has so many beginnings of documents that are not documents
            that the answer cannot be found.
    """
    documents, rest = list[Document](), ""
    place = depth = failed = 0
    steps: dict[str, int] = {}
    while mark := _MARK.search(text, place):
        kind, start = mark.lastgroup or "", mark.start()
        if depth == 0:
            rest += text[place:start]
            steps = _TAGS if kind == "open" else _FENCES if kind == "thought" else {}
        if depth == 0 and kind == "close":
            # The prompt opened the tag: everything before was thinking.
            documents, rest = [], ""
        place = mark.end()
        if depth == 0 and kind == "bracket":
            value, place = _document(text, start, mends=failed < _MENDED_ATTEMPTS)
            if value is not None:
                documents.append(Document(value, text[start:place]))
            else:
                rest += text[start]
                failed += 1
        if failed > _ATTEMPTS:
            raise InvalidArgumentError("there are too many brackets in it")
        depth += steps.get(kind, 0)
    return Reading(documents, rest if depth else rest + text[place:])


def _document(text: str, start: int, *, mends: bool) -> tuple[Any, int]:
    """Return the document that begins at a bracket, or `None`, and where to go on."""
    with suppress(ValueError, RecursionError):
        return _decode(text, start)
    if mends:
        mended = _LOOSE.sub(_strict, _COMMENT.sub(_strict, text[start:]))
        with suppress(ValueError, RecursionError):
            value, length = _decode(mended)
            return value, start + length
    return None, start + 1


def _strict(found: re.Match[str]) -> str:
    """Return what strict JSON has in the place of a piece, in as many characters."""
    piece = found[0]
    return piece if piece[0] == '"' else _PYTHON.get(piece, " " * len(piece))
