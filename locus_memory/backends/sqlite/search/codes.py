"""Codes of vectors: three bits a number, from which cosines are estimated without the vectors.

A vector is rotated, so that its numbers are spread evenly whatever the model; then each number
keeps its sign and two bits of its size. A code depends on its vector alone, so it never changes.
The estimates divide by the length of the code along its vector, which makes them unbiased: J. Gao
and C. Long, "RaBitQ: Quantizing High-Dimensional Vectors with a Theoretical Error Bound for
Approximate Nearest Neighbor Search", SIGMOD 2024.

The rotation is two rounds of random signs and Hadamard matrices, as in N. Ailon and B. Chazelle,
"The Fast Johnson-Lindenstrauss Transform", SIAM Journal on Computing 39(1), 2009. It is part of the
format of the file: it must never change.

A search has three steps, each over fewer vectors: the signs of all codes are compared with those of
the query, the codes that differ least are estimated, and the vectors of the best estimates are read
from the file. How many pass a step follows from the error of the step before, so that queries with
many vectors at nearly the same distance examine more of them.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from functools import lru_cache
from itertools import starmap
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from locus_memory.errors import BackendCorruptError

__all__ = [
    "CodeRows",
    "CodedQuery",
    "Steps",
    "code_bytes",
    "code_of",
    "encode",
    "encode_all",
    "error",
]

Words = NDArray[np.uint64]
Positions = NDArray[np.int64]
Singles = NDArray[np.float32]

_PLANES: Final = 3
"""The bits of a number: its sign, and two of its size."""

_BLOCK: Final = 64
_FACTORS: Final = 2
# The step of the best uniform quantizer of 8 levels for a normal distribution: J. Max, "Quantizing
# for Minimum Distortion", IRE Transactions on Information Theory 6(1), 1960. The error of a code is
# the root of its distortion, 0.0374.
_STEP: Final = 0.586
_ERROR: Final = 0.194
_TILE: Final = 32_768
_LEVELS: Final = 8

_SPREADS: Final = 3.5
"""How many standard errors a code may be beyond the best ones, to be estimated."""

_FEWEST, _PORTION = 4_096, 5
"""At least so many codes are estimated by their signs, and at most one of so many of them."""

_ESTIMATED: Final = 8_192
"""How many codes are estimated with their sizes, for a page that begins with the best."""

_FIRST, _SAMPLE, _MOST = 128, 1_024, 2_048
"""How many vectors are read at first, with a filter, and at most, beside those that are wanted."""

_FAR: Final = np.iinfo(np.uint16).max


def _words_of(dimension: int) -> int:
    """Return the number of 64-bit words of a plane."""
    return -(-dimension // _BLOCK)


def code_bytes(dimension: int) -> int:
    """Return the length of a code in bytes: its planes, and two factors as float32."""
    return 8 * _PLANES * _words_of(dimension) + 4 * _FACTORS


def error(dimension: int, cosine: float) -> float:
    """Return the standard error of the estimate of a cosine."""
    return _ERROR * float(
        np.sqrt(max(0.0, 1.0 - cosine * cosine) / (_words_of(dimension) * _BLOCK))
    )


@lru_cache(maxsize=8)
def _signs(words: int) -> tuple[Singles, Singles]:
    size = words * _BLOCK
    drawn = hashlib.shake_256(b"locus_memory codes").digest(size // 4)
    signs = np.unpackbits(np.frombuffer(drawn, np.uint8)).astype(np.float32) * 2 - 1
    return signs[:size], signs[size:]


@lru_cache(maxsize=1)
def _hadamard() -> Singles:
    """Return the orthogonal Hadamard matrix of a block."""
    ones = np.arange(_BLOCK)
    shared = np.bitwise_count(ones[:, None] & ones) & 1
    signs: Singles = (1 - 2 * shared.astype(np.float32)) / np.float32(np.sqrt(_BLOCK))
    return signs


def _rotated(vectors: Singles) -> Singles:
    """Return unit vectors of shape `(count, dimension)` rotated, with as many bits as a plane."""
    count, dimension = vectors.shape
    words = _words_of(dimension)
    first, second = _signs(words)
    padded = np.zeros((count, words * _BLOCK), np.float32)
    padded[:, :dimension] = vectors
    padded *= first
    mixed = padded.reshape(-1, _BLOCK) @ _hadamard()
    # Each block of the second round has numbers of all blocks of the first one.
    across = mixed.reshape(count, words, _BLOCK).transpose(0, 2, 1).reshape(count, -1) * second
    rotated = (across.reshape(-1, _BLOCK) @ _hadamard()).reshape(count, -1)
    return rotated.astype(np.float32, copy=False)


def encode(vectors: Singles) -> NDArray[np.uint8]:
    """Return the codes of unit vectors of shape `(count, dimension)`, of shape `(count, bytes)`."""
    rotated = _rotated(vectors)
    count, size = rotated.shape
    scaled = rotated * np.float32(np.sqrt(size) / _STEP)
    scaled += _LEVELS // 2
    np.maximum(scaled, 0, out=scaled)
    np.minimum(scaled, _LEVELS - 1, out=scaled)
    levels = scaled.astype(np.uint8)
    np.subtract(levels, np.float32((_LEVELS - 1) / 2), out=scaled)
    codes = np.empty((count, code_bytes(vectors.shape[1])), np.uint8)
    for place, bit in enumerate((4, 2, 1)):
        codes[:, place * size // 8 : (place + 1) * size // 8] = np.packbits(levels & bit, axis=1)
    along = codes[:, _PLANES * size // 8 :].view("<f4")
    np.einsum("ij,ij->i", rotated, scaled, out=along[:, 1])
    along[:, 0] = np.abs(rotated, out=rotated).sum(axis=1)
    np.maximum(along, np.float32(1e-6), out=along)
    np.reciprocal(along, out=along)
    return codes


def encode_all(vectors: Sequence[bytes | None]) -> list[bytes | None]:
    """Return the code of each vector, float32 in little-endian order, of any length."""
    codes: list[bytes | None] = [None] * len(vectors)
    for size in {len(each) for each in vectors if each is not None}:
        places = [n for n, each in enumerate(vectors) if each is not None and len(each) == size]
        joined = b"".join(vectors[place] or b"" for place in places)
        made = encode(np.frombuffer(joined, "<f4").reshape(len(places), -1).astype(np.float32))
        for place, code in zip(places, made, strict=True):
            codes[place] = code.tobytes()
    return codes


def code_of(vector: Any) -> bytes:
    """Return the code of a stored vector; of a damaged one, nothing."""
    if type(vector) is not bytes or not vector or len(vector) % 4:
        return b""
    with np.errstate(all="ignore"):
        rows = np.frombuffer(vector, "<f4").astype(np.float32).reshape(1, -1)
        return bytes(encode(rows)[0].tobytes())


@lru_cache(maxsize=1)
def _patterns() -> Singles:
    """Return the signs of the bits of each byte, of shape `(8, 256)`."""
    bits = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1)
    return np.ascontiguousarray(bits.T.astype(np.float32) * 2 - 1)


class Steps(NamedTuple):
    """How many rows a search examines.

    Attributes:
        first: At first; then twice as many, and so on.
        sample: The same, with a filter of which nothing is known.
        enough: How many of the sample have to satisfy it, or it is evaluated for all rows.
        most: At most, once enough are found.
    """

    first: int
    sample: int
    enough: int
    most: float = math.inf


class CodeRows:
    """Codes of vectors of one dimension, with room for more.

    Args:
        room: How many codes there may be.
        dimension: The length of the vectors.
    """

    is_coded = True

    def __init__(self, room: int, dimension: int) -> None:
        self._dimension = dimension
        self.planes: Words = np.empty((_PLANES * _words_of(dimension), room), np.uint64)
        """The words of the codes: first those of all signs, then those of the sizes."""
        self.factors: Singles = np.empty((room, _FACTORS), np.float32)
        """The factors of the codes."""

    def set(self, place: slice, codes: Sequence[Any]) -> None:
        """Set the codes at some places.

        Raises:
            BackendCorruptError: A code is damaged.
        """
        size = 8 * len(self.planes)
        try:
            rows = np.frombuffer(b"".join(codes), np.uint8).reshape(
                len(codes), code_bytes(self._dimension)
            )
        except (TypeError, ValueError) as error:
            raise BackendCorruptError("sqlite: the code of a stored vector is damaged") from error
        self.planes[:, place] = np.ascontiguousarray(rows[:, :size]).view("<u8").T
        self.factors[place] = np.ascontiguousarray(rows[:, size:]).view("<f4")

    def query(self, vector: bytes, count: int) -> CodedQuery:
        """Return a query of so many of the codes."""
        return CodedQuery(vector, self, count)


class CodedQuery:
    """A query of the vectors that have some codes.

    Args:
        vector: The query, a unit vector, float32 in little-endian order.
        rows: The codes.
        count: How many of them count.
    """

    vectors = None
    """The vectors are in the file."""

    def __init__(self, vector: bytes, rows: CodeRows, count: int) -> None:
        rotated = _rotated(np.frombuffer(vector, "<f4")[None].astype(np.float32))[0]
        self._dimension = len(vector) // 4
        self._planes, self._factors = rows.planes[:, :count], rows.factors
        # For each byte of a plane and each value of that byte, the sum of the query's numbers, each
        # with the sign of its bit.
        self._table: Singles = rotated.reshape(-1, 8) @ _patterns()
        self._distances = self._differing(np.packbits(rotated >= 0).view(np.uint64))

    def steps(self, wanted: int) -> Steps:
        """Return how many rows to examine: their vectors are read from the file."""
        return Steps(_FIRST + 2 * wanted, _SAMPLE + 8 * wanted, 20 + 8 * wanted, _MOST + 4 * wanted)

    def margin(self, cosine: float) -> float:
        """Return how far the estimate of a cosine may be off."""
        return 3 * error(self._dimension, cosine) + 1e-4

    def nearest(self, hidden: NDArray[np.bool_], wanted: int) -> tuple[Positions, Singles]:
        """Return the places of codes that are not hidden, the best first, and their estimates."""
        places = self._places(np.where(hidden, np.uint16(_FAR), self._distances), wanted)
        words = _words_of(self._dimension)
        sums = self._along(self._planes[:words], places)
        most = _ESTIMATED + 8 * wanted
        if len(places) > most:
            rough = sums * self._factors[places, 0]
            chosen = np.flatnonzero(rough >= np.partition(rough, -most)[-most])
            places, sums = places[chosen], sums[chosen]
        found = self._along(self._planes[2 * words :], places) * np.float32(0.5)
        found += self._along(self._planes[words : 2 * words], places) + 2 * sums
        found *= self._factors[places, 1]
        order = np.argsort(-found, kind="stable")
        return places[order], found[order]

    def _differing(self, signs: Words) -> NDArray[np.uint16]:
        """Return how many signs of each code differ from those of the query."""
        found = np.zeros(self._planes.shape[1], np.uint16)
        for start in range(0, len(found), _TILE):
            part = found[start : start + _TILE]
            for word, row in zip(signs, self._planes[:, start : start + _TILE], strict=False):
                part += np.bitwise_count(row ^ word)
        return found

    def _places(self, distances: NDArray[np.uint16], wanted: int) -> Positions:
        """Return the places of the codes to estimate."""
        fewest = min(len(distances), _FEWEST + 16 * wanted)
        limit = float(_FAR - 1)
        if fewest < len(distances):
            most = max(fewest, len(distances) // _PORTION)
            at = [wanted, fewest - 1, most - 1]
            few, near, far = np.partition(distances, at)[at].tolist()
            bits = _BLOCK * _words_of(self._dimension)
            spread = (few * max(0, bits - few) / bits) ** 0.5
            limit = min(max(few + _SPREADS * spread, near), far, limit)
        return np.flatnonzero(distances <= limit)

    def _along(self, plane: Words, places: Positions) -> Singles:
        """Return the sum of the query's numbers with the signs of a plane, at each place."""
        total = np.zeros(len(places), np.float32)
        tables = self._table.reshape(len(plane), 8, 256)
        for tables_of_word, row in zip(tables, plane, strict=True):
            octets = np.ascontiguousarray(row[places].view(np.uint8).reshape(-1, 8).T)
            for taken in starmap(np.take, zip(tables_of_word, octets, strict=True)):
                total += taken
        return total
