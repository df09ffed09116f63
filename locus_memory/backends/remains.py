"""The search for deleted words in the bytes that a database keeps: its files, or raw values."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

import orjson

from locus_memory.checkpoint.encoding.dictionary import DICTIONARY
from locus_memory.store.text import query_words, stem

__all__ = ["ByteSearch", "Place", "Readable", "of_file"]

_CHUNK: Final = 4 * 2**20
_HEAD: Final = 2
"""Bytes of a zlib stream before the id of its dictionary."""

_OVERLAP: Final = 2**16
_SHORTEST: Final = 4
"""Bytes of the shortest part of a word that is searched alone."""

_DICTIONARY_ID: Final = zlib.adler32(DICTIONARY).to_bytes(4, "big")
"""The mark in the head of a checkpoint's zlib stream; see RFC 1950, 2.2."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A place that was looked at for deleted words.

    Attributes:
        name: The place: a file, a table, a kind of keys.
        how: How it was looked at.
        bytes: How many bytes were looked at.
        found: How often a word was found.
        problem: Why the place proves nothing; `None`: it was looked at as a whole.
        limit: Why no look at this place is possible; it is documented, and counts as no problem.
        where: The first items or checkpoints with a word, by name.
    """

    name: str
    how: str
    bytes: int = 0
    found: int = 0
    problem: str | None = None
    limit: str | None = None
    where: tuple[str, ...] = ()


class Readable(Protocol):
    """The part of a file that a search needs."""

    def read(self, size: int, /) -> bytes:
        """Return the next bytes, at most so many; none at the end."""
        ...


class ByteSearch:
    """A search for words in raw bytes, and in the compressed checkpoints among them.

    A word is found as it is, in lower case, as the text index folds it, and escaped as in ASCII
    JSON; case does not matter in ASCII letters. Data that a server compresses itself, or splits
    within a word, is not found.

    Args:
        words: The words; each has at least one character.
    """

    def __init__(self, words: Iterable[str]) -> None:
        forms = {form for word in words for form in _forms(word)}
        self._pattern = re.compile(b"|".join(map(re.escape, sorted(forms))), re.IGNORECASE)

    def count(self, data: bytes) -> int:
        """Return how often a word is in the data, or in a checkpoint in it."""
        found = sum(1 for _ in self._pattern.finditer(data))
        return found + sum(self.count_plain(document) for document in _documents(data))

    def count_plain(self, data: bytes) -> int:
        """Return how often a word is in the data itself."""
        return sum(1 for _ in self._pattern.finditer(data))

    def count_text(self, text: str) -> int:
        """Return how often a word is in a text."""
        return self.count_plain(text.encode("utf-8", "surrogatepass"))

    def count_file(self, file: Readable) -> tuple[int, int]:
        """Return the length of a file in bytes, and how often a word is in it.

        The file is read in overlapping pieces, so a word in an overlap may count twice.
        """
        size = found = 0
        tail = b""
        while piece := file.read(_CHUNK):
            size += len(piece)
            found += self.count(tail + piece)
            tail = piece[-_OVERLAP:]
        return size, found


def of_file(path: Path, search: ByteSearch, how: str = "every byte") -> Place:
    """Return the place of a file, which may have been deleted meanwhile."""
    try:
        with path.open("rb") as file:
            size, found = search.count_file(file)
    except FileNotFoundError:
        return Place(name=str(path), how="it does not exist")
    except OSError as error:
        return Place(name=str(path), how="not read", problem=str(error.strerror))
    return Place(name=str(path), how=how, bytes=size, found=found)


def _forms(word: str) -> Iterator[bytes]:
    # A shorter stem is found by chance, and the beginning of a word in others.
    stems = (each for each in map(stem, query_words(word)) if len(each.encode()) >= _SHORTEST)
    for form in (word, word.lower(), *stems):
        if form:
            yield form.encode("utf-8", "surrogatepass")
            yield orjson.dumps(form)[1:-1]
            yield form.encode("ascii", "backslashreplace")


def _documents(data: bytes) -> Iterator[bytes]:
    """Yield the beginnings of the checkpoints in the data, as far as they are readable."""
    start = data.find(_DICTIONARY_ID)
    while start >= 0:
        if start >= _HEAD:
            yield _inflated(data, start - _HEAD)
        start = data.find(_DICTIONARY_ID, start + 1)


def _inflated(data: bytes, start: int) -> bytes:
    """Return the content of a zlib stream, up to its end or to damage."""
    stream = zlib.decompressobj(zdict=DICTIONARY)
    document = bytearray()
    # After an error, the stream ends here, or in a place that does not follow.
    with suppress(zlib.error):
        for place in range(start, len(data), 256):
            document += stream.decompress(data[place : place + 256])
            if stream.eof:
                break
    return bytes(document)
