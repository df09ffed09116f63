"""Made-up conversations of any length: words of a fixed vocabulary, the frequent ones often."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

LETTERS = "etaoinshrdlcumwfgypbvkjxqz"


class Talk:
    """Turns of about 600 + 1,200 characters; the same seed gives the same turns."""

    def __init__(self, seed: int = 7) -> None:
        self.random = random.Random(seed)
        weights = [1 / (rank + 1) for rank in range(len(LETTERS))]
        self.words = [
            "".join(self.random.choices(LETTERS, weights, k=self.random.randint(2, 9)))
            for _ in range(5000)
        ]
        self.weights = [1 / (rank + 5) for rank in range(len(self.words))]

    def text(self, length: int) -> str:
        words = self.random.choices(self.words, self.weights, k=length // 4)
        return " ".join(words)[:length]

    def turn(self) -> list[dict[str, str]]:
        return [
            {"role": "user", "content": self.text(600)},
            {"role": "assistant", "content": self.text(1200)},
        ]

    def states(self, count: int) -> Iterator[dict[str, Any]]:
        """Yield the state of a conversation after each of its turns."""
        messages: list[dict[str, str]] = []
        for turn in range(1, count + 1):
            messages = messages + self.turn()
            yield {"messages": messages, "turn": turn}
