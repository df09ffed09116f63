"""Splitting a user's text into clauses that state something."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

__all__ = ["Sentence", "clauses", "sentences", "slot", "third_person", "without_lead"]

_LONGEST_MESSAGE = 4000
_LONGEST_SENTENCE = 400
_LONGEST_SLOT = 80
_MOST_CLAUSES = 8

_CODE: Final = re.compile(r"```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z)|`[^`\n]*`", re.DOTALL)
_QUOTED_LINE: Final = re.compile(r"^[ \t]*>.*$", re.MULTILINE)
# A text to work on, not a statement: "Translate this: my name is Bob".
_MATERIAL: Final = re.compile(
    r"(?i)\b(?:translat|summari[sz]|proofread|rewrit|paraphras|rephras|correct|edit|draft|compos)"
    r"\w*\b[^.!?\n]{0,80}:.*|\bwrite\b[^.!?\n]{0,60}\b(?:story|poem|novel|scene|dialogue|script"
    r"|song)"
    r"\b.*",
    re.DOTALL,
)
_LONG_QUOTE: Final = re.compile(r"\"[^\"\s]+(?:\s+[^\"\s]+){3,}\"")
_APOSTROPHES: Final = str.maketrans(
    "\u2018\u2019\u02bc\u201c\u201d\u201e\u00ab\u00bb", '\'\'\'"""""'
)
_END: Final = re.compile(
    r"(?:(?<=[!?\u2026])|(?<=\.)(?<!\b[A-Z]\.)(?<!\b(?:Mr|Dr|St|vs|Ms|Jr|Sr)\.)"
    r"(?<!\b(?:Mrs|etc)\.)(?<!\b(?:e\.g|i\.e)\.))[\"')]*\s+|\n+"
)
_JOINT: Final = re.compile(
    r"(?i)(?:,|;| -| \u2013| \u2014)? (?:and|but|so|plus|because) (?=(?:I|I'm|I've|my|we|we're"
    r"|our)\b)"
    r"|(?:[,;]| -| \u2013| \u2014|:) (?=(?:I|I'm|I've|my|we|we're)\b)"
)
_LEAD: Final = re.compile(
    r"(?i)(?:(?:well|so|oh|hi|hey|hello|yes|yeah|yep|no|ok|okay|by the way|btw|fyi|also|and|but"
    r"|just"
    r" so you know|note that|please note(?: that)?|for the record|for your information|anyway"
    r"|actually|honestly|you know|thanks|thank you|sure|great|cool|wow|haha|lol|personally|in fact"
    r"|as (?:I said|you know|mentioned)|good (?:morning|evening|afternoon)|nowadays|currently"
    r"|these days|right now|at the moment)(?: [A-Z][a-z]+)?\b[,!.:;]*\s+)+"
)
_UNSURE: Final = re.compile(
    r"(?i)\b(?:maybe|perhaps|possibly|might|not sure|unsure|i guess|i suppose|i wonder|as if"
    r"|pretend|imagine|suppose|hypothetical\w*|what if|if (?:i|we|only)|wish|let's say|say i"
    r"|just kidding|joking|used to|almost|in (?:my|a|the) (?:dream|game|story|novel|book)s?"
    r"|(?:he|she|they|someone|people) thinks?"
    r"|(?<!')(?!(?:i|we|i've|we've|had|just|already|also)\b)\w[\w']*"
    r" (?:said|says|told|asked|asks|claims|claimed|replied|answered|shouted))\b"
)

_THIRD: Final = {
    "i": "they",
    "i'm": "they are",
    "i've": "they have",
    "i'd": "they would",
    "i'll": "they will",
    "me": "them",
    "my": "their",
    "mine": "theirs",
    "myself": "themselves",
    "we": "they",
    "we're": "they are",
    "we've": "they have",
    "us": "them",
    "our": "their",
    "ours": "theirs",
    "am": "are",
}
_WORD: Final = re.compile(r"[\w']+")
_ARTICLE: Final = re.compile(r"^(?:the|a|an|my|our|their|some|any|to) ")
_NO_SLOT: Final = re.compile(r"[^\w'+#-]+")


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence of a user.

    Attributes:
        text: The sentence, on one line.
        message: The position of its message in the conversation.
        first: Whether it is the first of its message.
    """

    text: str
    message: int
    first: bool

    @property
    def asks(self) -> bool:
        """Whether it is a question."""
        return self.text.rstrip("\"') ").endswith("?")

    @property
    def unsure(self) -> bool:
        """Whether its statement is uncertain."""
        return _UNSURE.search(self.text) is not None


def sentences(text: str, message: int) -> Iterator[Sentence]:
    """Yield the sentences of a message, without code, quotations and texts to work on.

    Of a message of more than 4,000 characters, only the beginning is read, without its last two
    sentences: one is cut off, and the text after the other is unknown.
    """
    is_cut = len(text) > _LONGEST_MESSAGE
    text = text[:_LONGEST_MESSAGE]
    plain = _QUOTED_LINE.sub("\n", _CODE.sub(" ", text.translate(_APOSTROPHES)))
    told = _LONG_QUOTE.sub(" ", _MATERIAL.sub("\n", plain))
    for number, piece in enumerate(_END.split(told)[: -2 if is_cut else None]):
        line = " ".join(piece.split()).lstrip("-*#\u2022 ")
        if line and len(line) <= _LONGEST_SENTENCE:
            yield Sentence(line, message, first=number == 0)


def without_lead(text: str) -> str:
    """Return a sentence or clause without "Well, " and the like before it or marks after it."""
    lead = _LEAD.match(text)
    return (text[lead.end() :] if lead else text).strip().rstrip(" .!?\u2026")


def clauses(sentence: str) -> list[str]:
    """Return the parts of a sentence with their own subject, without lead-ins."""
    return list(filter(None, map(without_lead, _JOINT.split(sentence)[:_MOST_CLAUSES])))


def third_person(text: str) -> str:
    """Return a user's statement about themselves in the third person."""
    return _WORD.sub(lambda found: _THIRD.get(found.group().lower(), found.group()), text)


def slot(text: str) -> str:
    """Return the part of a key for a noun phrase: lower case, no article, not too long."""
    lowered = _ARTICLE.sub("", text.casefold().strip()).replace("color", "colour")
    return _NO_SLOT.sub(" ", lowered).strip()[:_LONGEST_SLOT].strip()
