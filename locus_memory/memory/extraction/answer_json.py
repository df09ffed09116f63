"""The JSON documents in a model's answer, without its thinking; pure."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from locus_memory.errors import InvalidArgumentError

__all__ = ["Document", "Reading", "read_documents"]

_THOUGHT: Final = "think(?:ing)?|thoughts?|reason(?:ing)?|reflection|analysis|scratchpad"
# A tag of thinking, open or close; a code fence of thinking; a possible start of a document.
_MARK: Final = re.compile(
    rf"(?P<tag>[<\[\u25c1](?P<close>/?)(?:{_THOUGHT})(?:\s[^<>\[\]]*)?[>\]\u25b7])"
    rf"|(?P<fence>^[ \t]*`{{3,}}[ \t]*(?:{_THOUGHT})\b)"
    r"|(?P<bracket>\{(?=\s*[\"}])|\[(?=\s*[{\]]))",
    re.IGNORECASE | re.MULTILINE,
)
_FENCE: Final = re.compile(r"^[ \t]*`{3,}[ \t]*(\S*)", re.MULTILINE)

# The limits of failed attempts, each of which reads as far as it can: in all, and with repairs.
_ATTEMPTS, _MENDED_ATTEMPTS = 200, 10

_TOKEN: Final = re.compile(
    r'(?P<text>"(?:[^"\\]|\\.)*")|(?P<open>[{\[])|(?P<close>[}\]])|(?P<comma>,)'
    r"|(?P<comment>//[^\n]*|/\*.*?\*/)|(?P<other>[^\"{}\[\],/]+|.)",
    re.DOTALL,
)
_PYTHON: Final = {"True": "true", "False": "false", "None": "null"}
_WORD: Final = re.compile(r"\b(True|False|None)\b")
_CLOSES: Final = {"{": "}", "[": "]"}


@dataclass(frozen=True, slots=True)
class Document:
    """A JSON document in an answer.

    Attributes:
        value: The document.
        source: Its text.
    """

    value: Any
    source: str


@dataclass(slots=True)
class Reading:
    """The content of an answer without its thinking.

    Attributes:
        documents: The complete JSON objects, and lists of objects, in order.
        rest: The text between them.
    """

    documents: list[Document] = field(default_factory=list[Document])
    rest: str = ""


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
    return _Reader(text).read()


class _Reader:
    """A reader that passes over an answer once; each part is read by the method of its mark."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._found = Reading()
        self._depth = 0
        self._done = 0
        self._failed = 0
        self._decode: Callable[..., tuple[Any, int]] = json.JSONDecoder(strict=False).raw_decode

    def read(self) -> Reading:
        while mark := _MARK.search(self._text, self._done):
            if self._depth == 0:
                self._found.rest += self._text[self._done : mark.start()]
            if mark["tag"]:
                self._enter_or_leave(is_close=bool(mark["close"]))
                self._done = mark.end()
            elif mark["fence"]:
                self._done = self._end_of_fence(mark.end())
            else:
                self._done = self._after_bracket(mark.start())
        if self._depth == 0:
            self._found.rest += self._text[self._done :]
        return self._found

    def _enter_or_leave(self, *, is_close: bool) -> None:
        if is_close and self._depth == 0:
            # The prompt opened the tag: everything before was thinking.
            self._found = Reading()
        self._depth += 1 if not is_close else -min(1, self._depth)

    def _end_of_fence(self, start: int) -> int:
        depth = 1
        for fence in _FENCE.finditer(self._text, start):
            depth += 1 if fence[1] else -1
            if depth == 0:
                return fence.end()
        return len(self._text)

    def _after_bracket(self, start: int) -> int:
        """Read the document that begins here, if any; returns the position to continue at."""
        if self._depth == 0:
            try:
                value, end = self._document(start)
            except (ValueError, RecursionError):
                self._fail()
            else:
                self._found.documents.append(Document(value, self._text[start:end]))
                return end
            self._found.rest += self._text[start]
        return start + 1

    def _document(self, start: int) -> tuple[Any, int]:
        try:
            return self._decode(self._text, start)
        except ValueError:
            if self._failed >= _MENDED_ATTEMPTS:
                raise
            mended, end = _mended(self._text, start)
            return self._decode(mended, 0)[0], end

    def _fail(self) -> None:
        self._failed += 1
        if self._failed > _ATTEMPTS:
            raise InvalidArgumentError("there are too many brackets in it")


def _mended(text: str, start: int) -> tuple[str, int]:
    """Return the text that begins at a bracket as strict JSON, and the position of its end.

    Raises:
        ValueError: It has no end.
    """
    pieces: list[str] = []
    closing: list[str] = []
    for token in _TOKEN.finditer(text, start):
        piece = token[0]
        if token["open"]:
            closing.append(_CLOSES[piece])
        elif token["close"]:
            if closing.pop() != piece:
                break
            _drop_last_comma(pieces)
        elif token["comment"]:
            piece = " "
        elif token["other"]:
            piece = _WORD.sub(lambda word: _PYTHON[word[1]], piece)
        pieces.append(piece)
        if not closing:
            return "".join(pieces), token.end()
    raise ValueError("the brackets do not match")


def _drop_last_comma(pieces: list[str]) -> None:
    while pieces and not pieces[-1].strip():
        pieces.pop()
    if pieces[-1] == ",":
        pieces.pop()
