"""One table of shapes for saves, loads and puts: texts of several scripts, states of several forms.

A benchmark of one shape makes code that is fast for one shape. So the measures of saves, loads and
puts run over all of these, and a bar holds for the worst.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from conversations import Talk

Say = Callable[[int], str]
Document = dict[str, Any]

_ACCENTS: Final = str.maketrans({"e": "é", "u": "ü", "n": "ñ", "o": "ö", "c": "ç"})
_EMOJI: Final = "😀😂🥹🙏👍🏽🎉🚀🌍🍵❤️🔥👩‍🚀✅⚠️"


def ascii_words(seed: int) -> Say:
    """Return made-up words of 26 letters."""
    return Talk(seed).text


def prose(seed: int) -> Say:
    """Return European prose: some accents, typographic quotes, dashes and apostrophes."""
    talk, chance = Talk(seed), random.Random(seed)

    def say(length: int) -> str:
        words = talk.text(length).split(" ")
        for at in range(len(words)):
            drawn = chance.random()
            if drawn < 0.06:
                words[at] = words[at].translate(_ACCENTS)
            elif drawn < 0.09:
                words[at] = f"“{words[at]}”"
            elif drawn < 0.12:
                words[at] += "’s"  # noqa: RUF001 - as people write
            elif drawn < 0.14:
                words[at] += " –"  # noqa: RUF001 - as people write
        return " ".join(words)[:length]

    return say


def chinese(seed: int) -> Say:
    """Return Chinese: characters of a vocabulary of 3,000, the frequent ones often."""
    chance = random.Random(seed)
    characters = [chr(0x4E00 + place) for place in chance.sample(range(20_000), 3000)]
    weights = [1 / (rank + 10) for rank in range(len(characters))]

    def say(length: int) -> str:
        # A character of Chinese says as much as three letters.
        said = chance.choices(characters, weights, k=length // 3)
        return "".join(char + ("，" if place % 9 == 8 else "") for place, char in enumerate(said))  # noqa: RUF001 - as people write

    return say


def emoji(seed: int) -> Say:
    """Return words with an emoji after every fourth."""
    talk, chance = Talk(seed), random.Random(seed)

    def say(length: int) -> str:
        words = talk.text(length).split(" ")
        words[::4] = [f"{word} {chance.choice(_EMOJI)}" for word in words[::4]]
        return " ".join(words)[:length]

    return say


TEXTS: Final[Mapping[str, Callable[[int], Say]]] = {
    "ASCII": ascii_words,
    "prose": prose,
    "Chinese": chinese,
    "emoji": emoji,
}


@dataclass(frozen=True, slots=True)
class Shape:
    """How the states of a conversation look, and what its texts are made of."""

    name: str
    text: str
    form: str


FORMS: Final = ("flat", "nested counter", "mapping of messages", "edited message", "scratchpad")
SHAPES: Final = (
    *(Shape(f"flat, {name}", name, "flat") for name in TEXTS),
    *(Shape(form, "prose", form) for form in FORMS[1:]),
)


def states_of(shape: Shape, turns: int) -> Any:
    """Yield the state, as JSON, after each turn of a conversation of a shape."""
    say = TEXTS[shape.text](7)
    messages: list[Document] = []
    for turn in range(1, turns + 1):
        messages = [*messages, {"role": "user", "content": say(600)}]
        messages.append({"role": "assistant", "content": say(1200)})
        if shape.form == "edited message" and turn > 1:
            messages[-3] = {**messages[-3], "content": messages[-3]["content"] + say(40)}
        yield _state(shape.form, messages, turn, say)


def _state(form: str, messages: list[Document], turn: int, say: Say) -> Document:
    if form == "nested counter":
        return {"messages": messages, "metadata": {"turn": turn, "tokens": {"used": turn * 500}}}
    if form == "mapping of messages":
        return {"turn": turn, "by_name": {f"m{i}": each for i, each in enumerate(messages)}}
    if form == "scratchpad":
        return {"messages": messages, "turn": turn, "scratchpad": {"notes": say(4000)}}
    return {"messages": messages, "turn": turn}
