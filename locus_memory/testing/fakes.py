"""Fakes of the clock and of the embedder, which tests control."""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Sequence
from typing import Literal

from locus_memory.store.text import query_words, stem

__all__ = ["FakeClock", "FakeEmbedder"]


class FakeClock:
    """A clock that changes only when it is moved; call it like `time.time`.

    Attributes:
        now: Seconds since the epoch.
    """

    def __init__(self, start: float = 1_700_000_000.0) -> None:
        self.now = start

    def __call__(self) -> float:
        """Return the time, in seconds since the epoch."""
        return self.now

    def advance(self, seconds: float) -> None:
        """Move the clock forward by this many seconds."""
        self.now += seconds

    def set(self, moment: float) -> None:
        """Set the clock to a time, which may be in the past."""
        self.now = moment


class FakeEmbedder:
    """A deterministic embedder: texts that share words get similar vectors.

    Each distinct word adds its own pseudo-random direction, a hash of its stem.

    Attributes:
        name: The name of the model.
        dimension: The length of every vector.
        calls: The number of texts of each call of `embed`.
    """

    def __init__(self, dimension: int = 64) -> None:
        self.name = f"fake-{dimension}"
        self.dimension = dimension
        self.calls: list[int] = []

    async def embed(
        self,
        texts: Sequence[str],
        *,
        kind: Literal["document", "query"] = "document",
    ) -> list[list[float]]:
        """Return one unit vector per text; `kind` has no effect."""
        del kind
        self.calls.append(len(texts))
        return [self._vector(text) for text in texts]

    def _vector(self, text: str) -> list[float]:
        counts = Counter(map(stem, query_words(text))) or Counter([""])
        vector = [0.0] * self.dimension
        for word, count in counts.items():
            for index, part in enumerate(self._direction(word)):
                vector[index] += count * part
        length = math.hypot(*vector)
        return [part / length for part in vector]

    def _direction(self, word: str) -> list[float]:
        noise = hashlib.shake_128(word.encode()).digest(2 * self.dimension)
        pairs = zip(noise[::2], noise[1::2], strict=True)
        # Odd numbers only, so that no direction is ever all zero.
        return [float(2 * (256 * high + low) - 65535) for high, low in pairs]
