"""Codes of vectors: three bits a number, from which cosines are estimated without the vectors.

A vector is rotated, so that its numbers are spread evenly whatever the model; then each number
keeps its sign and two bits of its size. A code depends on its vector alone, so it never changes.
The estimates divide by the length of the code along its vector, which makes them unbiased: J. Gao
and C. Long, "RaBitQ: Quantizing High-Dimensional Vectors with a Theoretical Error Bound for
Approximate Nearest Neighbor Search", SIGMOD 2024.

The rotation is two rounds of random signs and Hadamard matrices, as in N. Ailon and B. Chazelle,
"The Fast Johnson-Lindenstrauss Transform", SIAM Journal on Computing 39(1), 2009. It is part of the
format of the file: it must never change.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import starmap
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

__all__ = ["PLANES", "Target", "code_bytes", "code_of", "encode", "encode_all", "error", "words_of"]

Words = NDArray[np.uint64]
Positions = NDArray[np.int64]
Singles = NDArray[np.float32]

PLANES: Final = 3
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


def words_of(dimension: int) -> int:
    """Return the number of 64-bit words of a plane."""
    return -(-dimension // _BLOCK)


def code_bytes(dimension: int) -> int:
    """Return the length of a code in bytes: its planes, and two factors as float32."""
    return 8 * PLANES * words_of(dimension) + 4 * _FACTORS


def error(dimension: int, cosine: float) -> float:
    """Return the standard error of the estimate of a cosine."""
    return _ERROR * float(np.sqrt(max(0.0, 1.0 - cosine * cosine) / (words_of(dimension) * _BLOCK)))


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
    words = words_of(dimension)
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
    along = codes[:, PLANES * size // 8 :].view("<f4")
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


@dataclass(frozen=True, slots=True)
class Target:
    """The vector of a query, prepared for the comparison with codes.

    Attributes:
        words: Its signs.
        table: For each byte of a plane and each value of that byte, the sum of the query's numbers,
            each with the sign of its bit; of shape `(bytes of a plane, 256)`.
    """

    words: Words
    table: Singles

    @classmethod
    def of(cls, vector: bytes) -> Target:
        """Return the target of a unit vector, float32 in little-endian order."""
        rotated = _rotated(np.frombuffer(vector, "<f4")[None].astype(np.float32))[0]
        words = np.packbits(rotated >= 0).view(np.uint64)
        return cls(words, rotated.reshape(-1, 8) @ _patterns())

    def distances(self, planes: Words) -> NDArray[np.uint16]:
        """Return how many signs of each code differ from those of the query.

        Args:
            planes: The words of the codes, of shape `(words of a code, count)`.
        """
        found = np.zeros(planes.shape[1], np.uint16)
        for start in range(0, len(found), _TILE):
            part = found[start : start + _TILE]
            for word, row in zip(self.words, planes[:, start : start + _TILE], strict=False):
                part += np.bitwise_count(row ^ word)
        return found

    def by_signs(self, planes: Words, places: Positions) -> Singles:
        """Return the sum of the query's numbers with the signs of the codes at these places."""
        return self._along(planes[: len(self.words)], places)

    def by_sizes(self, planes: Words, places: Positions, by_signs: Singles) -> Singles:
        """Return the products of the query with the codes, from the sums by their signs."""
        words = len(self.words)
        high, low = planes[words : 2 * words], planes[2 * words :]
        found = self._along(low, places)
        found *= np.float32(0.5)
        found += self._along(high, places)
        found += by_signs + by_signs
        return found

    def _along(self, plane: Words, places: Positions) -> Singles:
        total = np.zeros(len(places), np.float32)
        tables = self.table.reshape(len(plane), 8, 256)
        for tables_of_word, row in zip(tables, plane, strict=True):
            octets = np.ascontiguousarray(row[places].view(np.uint8).reshape(-1, 8).T)
            for taken in starmap(np.take, zip(tables_of_word, octets, strict=True)):
                total += taken
        return total
