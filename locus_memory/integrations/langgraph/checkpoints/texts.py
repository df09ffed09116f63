"""Bytes as text that compresses well, and a pool in which a document holds long texts once; pure.

Each byte is the Latin-1 character of its number, with two exceptions that make the text short and
legible. UTF-8 sequences are the characters they encode, those of Latin-1 itself moved to a private
range; and phrases that every LangChain message holds are one private character each. Both can be
undone without knowing where they were applied, so every sequence of bytes is restored exactly.

A user's text passes through several channels before it is in a conversation. So the long legible
runs of all values of a document are in one pool, and a private character refers to each where it is
used.
"""

from __future__ import annotations

import re
import threading
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, Final, cast

from locus_memory.errors import CheckpointCorruptError

__all__ = ["SHORTEST", "Pool", "bytes_of", "text_of", "unfold"]

SHORTEST: Final = 48
"""Characters of the shortest run that is pooled."""

_PHRASES = (
    "\xb1additional_kwargs\x80\xb1response_metadata\x80\xa4type\xa5human\xa4name\xc0\xa2id\xd9$",
    "\xb1additional_kwargs\x80\xb1response_metadata\x80\xa4type\xa2ai\xa4name\xc0\xa2id\xd9$",
    "\xaatool_calls\x90\xb2invalid_tool_calls\x90\xaeusage_metadata\xc0\xb3model_validate_json",
    "\xbdlangchain_core.messages.human\xacHumanMessage\x86\xa7content",
    "\xbalangchain_core.messages.ai\xa9AIMessage\x89\xa7content",
    "\xbclangchain_core.messages.tool\xabToolMessage\x89\xa7content",
    "\xbelangchain_core.messages.system\xadSystemMessage\x86\xa7content",
    "\xb1additional_kwargs\x80\xb1response_metadata\x80",
    "\xb1additional_kwargs\x80\xb1response_metadata",
    "\xa4type\xa5human\xa4name\xc0\xa2id",
    "\xa4type\xa2ai\xa4name\xc0\xa2id",
    "\xa4type\xa4tool\xa4name",
    "\xa4type\xa6system\xa4name\xc0\xa2id",
    "\xaatool_calls\x90\xb2invalid_tool_calls\x90\xaeusage_metadata",
    "\xb2invalid_tool_calls\x90\xaeusage_metadata",
    "\xacinput_tokens",
    "\xadoutput_tokens",
    "\xactotal_tokens",
    "\xb3model_validate_json",
    "\xaatool_calls",
    "\xactool_call_id",
    "\xa8artifact\xc0\xa6status\xa7success",
    "\xaamodel_name",
    "\xadfinish_reason",
)
"""The position of a phrase is part of the stored format: append only, 256 at most."""

# Private characters: U+E000 to U+E0FF are phrases, U+E180 to U+E1FF Latin-1's upper half, and
# all from U+F0000 on are places in a pool. Text that has any of its own keeps them as bytes.
_TOKENS = {chr(0xE000 + position): phrase for position, phrase in enumerate(_PHRASES)}
_PRIVATE = re.compile("[\ue000-\ue1ff\U000f0000-\U0010ffff]")
_RAISED = {number: number + 0xE100 for number in range(0x80, 0x100)}
_LOWERED = {raised: number for number, raised in _RAISED.items()}
_SEQUENCES = re.compile(
    "(?:[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3})+"
)
_BEYOND = re.compile(
    "[\ue000-\ue0ff\U000f0000-\U0010ffff]|[^\x00-\xff\ue000-\ue0ff\U000f0000-\U0010ffff]+"
)

_FIRST_PLACE = 0xF0000
_PLACES = 0x10FFFF - _FIRST_PLACE
_PLACE = re.compile("[\U000f0000-\U0010ffff]")
_RUN = re.compile(
    f"[\t\n\r -~\u0100-\ud7ff\ue180-\ue1ff\uf900-\U000effff]{{{SHORTEST},}}",
)

_INDEXED = 64
"""How many of the last texts of a loaded document are recognised: a text is used again soon."""

_LEAVES = 32
_LONGEST_LEAF = 8 * 1024

_STEP = 16
"""A pool is searched for unused texts each time it has grown by this many texts."""


def text_of(data: bytes) -> str:
    """Return bytes as text; the last short ones are cached."""
    return _short_text(data) if len(data) <= _LONGEST_LEAF else _text(data)


def _text(data: bytes) -> str:
    text = data.decode("latin-1")
    for token, phrase in _TOKENS.items():
        text = text.replace(phrase, token)
    return _SEQUENCES.sub(_characters, text)


# A task's write becomes part of the next checkpoint.
_short_text = lru_cache(maxsize=256)(_text)


def bytes_of(text: str, texts: Sequence[str] = ()) -> bytes:
    """Return the bytes that `text_of` wrote.

    Args:
        text: The text, folded or not.
        texts: The texts of the pool it was folded into.

    Raises:
        CheckpointCorruptError: The text has a private character without a meaning.
    """

    def latin(match: re.Match[str]) -> str:
        run = match[0]
        phrase = _TOKENS.get(run)
        if phrase is not None:
            return phrase
        if run < "\U000f0000":
            return _sequence(run)
        pooled = _text_at(run, texts)
        return pooled if pooled.isascii() else _BEYOND.sub(latin, pooled)

    return _BEYOND.sub(latin, text).encode("latin-1")


def _sequence(run: str) -> str:
    if "\ue000" <= run[0] <= "\ue0ff":
        raise _too_new()
    return run.translate(_LOWERED).encode().decode("latin-1")


def _text_at(place: str, texts: Sequence[str]) -> str:
    index = ord(place) - _FIRST_PLACE
    if index >= len(texts):
        raise _too_new()
    return texts[index]


def _characters(match: re.Match[str]) -> str:
    run = match[0]
    try:
        characters = run.encode("latin-1").decode()
    except UnicodeDecodeError:
        return run
    return run if _PRIVATE.search(characters) else characters.translate(_RAISED)


def _too_new() -> CheckpointCorruptError:
    return CheckpointCorruptError("", None, "a value of it was written by a newer version")


def unfold(encoded: Any, texts: Sequence[str]) -> Any:
    """Return JSON with the text of the pool in each place."""

    def text_at(match: re.Match[str]) -> str:
        return _text_at(match[0], texts)

    def unfolded(part: Any) -> Any:
        if isinstance(part, str):
            return _PLACE.sub(text_at, part)
        if isinstance(part, list):
            return [unfolded(child) for child in part]
        if isinstance(part, dict):
            return {key: unfolded(child) for key, child in cast("dict[str, Any]", part).items()}
        return part

    return unfolded(encoded)


class Pool:
    """The long texts of a document and of those after it; it only grows.

    Threads may share it.

    Attributes:
        characters: The total length of all texts.
    """

    def __init__(self, texts: Iterable[str] = ()) -> None:
        self._texts = list(texts)
        first = max(0, len(self._texts) - _INDEXED)
        self._places = {text: place for place, text in enumerate(self._texts[first:], first)}
        self._lock = threading.Lock()
        self._looked = len(self._texts)
        self._leaves: OrderedDict[tuple[str, bytes], Any] = OrderedDict()
        self.characters = sum(map(len, self._texts))

    def __len__(self) -> int:
        return len(self._texts)

    @property
    def weight(self) -> int:
        """About how many bytes the pool takes."""
        with self._lock:
            leaves = sum(len(data) for _, data in self._leaves)
        return 2 * self.characters + 2 * leaves

    def begins(self, texts: Sequence[str]) -> bool:
        """Whether the pool begins with these texts."""
        return self._texts[: len(texts)] == texts

    @property
    def texts(self) -> list[str]:
        """The texts in the form of a document."""
        return self._texts.copy()

    def fold(self, encoded: Any) -> Any:
        """Return JSON with places instead of long texts, which are added to the pool."""
        if isinstance(encoded, str):
            return _RUN.sub(self._placed, encoded)
        if isinstance(encoded, list):
            return [self.fold(part) for part in encoded]
        if isinstance(encoded, dict):
            return {key: self.fold(part) for key, part in cast("dict[str, Any]", encoded).items()}
        return encoded

    def _placed(self, match: re.Match[str]) -> str:
        text = match[0]
        with self._lock:
            place = self._places.get(text)
            if place is None:
                if len(self._texts) > _PLACES:
                    return text
                place = self._places[text] = len(self._texts)
                self._texts.append(text)
                self.characters += len(text)
        return chr(_FIRST_PLACE + place)

    def leaf(self, kind: str, data: bytes) -> Any:
        """Return typed bytes as folded JSON; the last ones are cached."""
        with self._lock:
            known = self._leaves.get((kind, data))
        if known is None:
            text = self.fold(text_of(data))
            known = text if kind == "msgpack" else [kind, text]
            self.remember(kind, data, known)
        return known

    def remember(self, kind: str, data: bytes, folded: Any) -> None:
        """Cache the result of `leaf`."""
        if len(data) <= _LONGEST_LEAF:
            with self._lock:
                self._leaves[kind, data] = folded
                while len(self._leaves) > _LEAVES:
                    self._leaves.popitem(last=False)

    def is_stale(self, folded: Any) -> bool:
        """Whether less than half of the texts are used here; checked only now and then."""
        grown = len(self._texts)
        if grown // _STEP == self._looked // _STEP:
            return False
        self._looked = grown
        used: set[str] = set()
        _collect(folded, used)
        return len(used) * 2 < grown


def _collect(folded: Any, used: set[str]) -> None:
    if isinstance(folded, str):
        used.update(_PLACE.findall(folded))
    elif isinstance(folded, list):
        for part in folded:
            _collect(part, used)
    elif isinstance(folded, dict):
        for part in cast("dict[str, Any]", folded).values():
            _collect(part, used)
