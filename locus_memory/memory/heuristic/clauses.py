"""Splitting a user's text into clauses that state something.

In a sentence such as "I live in Graz, no wait, in Linz", the words before the repair are not meant.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from locus_memory.memory.heuristic.material import spoken

__all__ = ["Sentence", "clauses", "repaired", "sentences", "slot", "without_lead"]

_LONGEST_MESSAGE = 4000
_LONGEST_SENTENCE = 400
_LONGEST_SLOT = 80
_MOST_CLAUSES = 8
# The words of a sentence after which an answer to the assistant only begins: "No, wrong."
_SHORT = 3

_APOSTROPHES: Final = str.maketrans(
    "\u2018\u2019\u02bc\u201c\u201d\u201e\u00ab\u00bb", '\'\'\'"""""'
)
_END: Final = re.compile(
    r"(?:(?<=[!?\u2026])|(?<=\.)(?<!\b[A-Z]\.)(?<!\b(?:Mr|Dr|St|vs|Ms|Jr|Sr)\.)"
    r"(?<!\b(?:Mrs|etc)\.)(?<!\bProf\.)(?<!\b(?:e\.g|i\.e)\.))[\"')]*\s+|\n+"
)
_JOINT: Final = re.compile(
    r"(?i)(?:,|;| -| \u2013| \u2014)? (?:and|but|so|plus|because) (?=(?:I|I'm|I've|my|we|we're"
    r"|our)\b)"
    r"|(?:[,;]| -| \u2013| \u2014|:) (?=(?:I|I'm|I've|my|we|we're)\b)"
)
_LEAD: Final = re.compile(
    r"(?i)(?:(?:well|so|oh|hi|hey|hello|yes|yeah|yep|nope|nah|ok|okay"
    r"|no(?=[,.!;:]| (?:I|I'm|my|we|don't|do not|it|it's|call|use|not)\b)"
    r"|by the way|btw|fyi|also|and|but"
    r"|just"
    r" so you know|note that|please note(?: that)?|for the record|for your information|anyway"
    r"|actually|honestly|you know|thanks|thank you|sure|great|cool|wow|haha|lol|personally|in fact"
    r"|as (?:I said|you know|mentioned)|sorry|wait|correction|i mean|listen"
    r"|good (?:morning|evening|afternoon)|nowadays|currently"
    r"|these days|right now|at the moment)(?: [A-Z][a-z]+)?\b[,!.:;]*\s+)+"
)
_UNSURE: Final = re.compile(
    r"(?i)\b(?:maybe|perhaps|possibly|might|not sure|unsure|i guess|i suppose|i wonder|as if"
    r"|pretend|imagine|suppose|supposing|hypothetical\w*|what if|if|unless|whether|assuming"
    r"|provided that|wish|let's say|say i|depending|according to|for (?:example|instance)|e\.g"
    r"|just kidding|joking|used to|almost|no way|as though"
    r"|in (?:my|a|the|this|that|another) (?:dream|game|story|novel|book|movie|film|scenario|role"
    r"|example|life|play|childhood|youth)s?|my character|as a (?:kid|child|boy|girl|teenager)"
    r"|when (?:i|we) (?:was|were)|back (?:then|when|in the day)|once upon|growing up|in the past"
    r"|formerly|(?:it's|it is|that's|that is|is) (?:not true|false|a lie|untrue)"
    r"|never said|(?:i|we) lied|(?:don't|do not|didn't) (?:think|believe|say|mean)"
    r"|(?!(?:i|we)\b)\w[\w']* (?:thinks?|believes?|reckons?|insists?|suspects?|swears?|assumes?"
    r"|feels?) (?:that )?(?:i|we|my|i'm|i've)"
    r"|(?:he|she|they|someone|people) thinks?"
    r"|(?<!')(?!(?:i|we|i've|we've|had|just|already|also)\b)\w[\w']*"
    r" (?:said|says|say|told|asked|asks|claims|claimed|replied|answered|shouted|wrote|writes))\b"
    r"|\bis what (?:i|we|he|she|they)(?:'d|'ve| had| have)? (?:tell|told|say|said)\b"
    r"|\bnot really[\s!.)]*$"
    r"|\bno (?:more|longer)[\s!.)]*$|\bexcept (?:on|at|in|when|if|during)\b"
    r"|^(?:oh,? (?:sure|right)|yeah,? right)\b"
    r"|^(?:once|until|as long as|had|should|were) (?:i|we)\b|^when(?:ever)? (?:i|we)\b"
)
_LAUGHING: Final = re.compile(
    r"(?i)\b(?:lol|lmao|rofl|haha+|hehe+|jk|kidding|/s)[\s!.)]*$|[\U0001f602\U0001f923\U0001f61c]"
)
# Words that somebody else said, or nobody: "Never use mocks, says Fowler".
_ATTRIBUTED: Final = re.compile(
    r"(?i), (?:says?|said|writes?|wrote|argues?|claim(?:s|ed)?|insist(?:s|ed)?) \w"
    r"|, (?!(?:as|like|whatever|whoever|what|no matter)\b)(?:(?!(?:I|we|you)\b)[\w'-]+ ){1,4}"
    r"(?:says?|said|insists?|claims?)[\s!.]*$"
    r"|\bsaid (?:nobody|no[ -]one)\b"
)
_TAKEN_BACK: Final = r"no,? wait|wait,? no|(?:no|oops)[,.! ]+sorry|oops"
_MEANT: Final = r"(?:sorry,? |no,? )?I meant"
# What follows is said in place of what was said before: "No wait, Linz."
_INSTEAD: Final = (
    rf"(?:(?:{_TAKEN_BACK})[,.:!\u2013\u2014-] ?(?:I meant )?|{_MEANT} )"
    r"(?:(?:it's|it is|in|to|at) )?[\w'-]+(?: [\w'-]+){0,2}"
)
_JOKE: Final = re.compile(
    r"(?i)(?:(?:ha[ha]*|lol|no|nah|oh)[,.! ]+)*(?:just |only |i'm |i am |was )*(?:kidding|joking"
    r"|jk|not|psych|i wish|(?:that|it) (?:was|is) (?:a|just a) (?:joke|lie|test|test sentence)"
    r"|that's (?:a|just a) (?:joke|lie)|no, not really|not really|scratch that|as if"
    rf"|in my dreams|(?:kidding|joking|jk)[,.! ]+(?!aside\b|around\b).{{1,60}}|{_INSTEAD})[\s!.)]*"
)
_REPAIR: Final = re.compile(
    r"(?i)(?P<before>.+?)(?:[,;]| -| \u2013| \u2014|\.{3}|\u2026) ?"
    rf"(?:(?P<surely>(?:{_TAKEN_BACK}|{_MEANT}|scratch that|make that|or rather)\b[,:.]?"
    r"|(?:no|wait)[,:])|(?:sorry|wait|I mean)\b[,:]?)"
    r" (?P<after>[^,;]+?)[\s.!]*"
)
_MOST_WORDS: Final = 4
"""A repair has no more words than these; more of them are a sentence."""

_HEAD: Final = re.compile(
    r"(?i)(?:'m|'s|'re|\b(?:am|is|are|was|me|have|has|own|speak|play|use|drink|eat|like|love|hate"
    r"|prefer|called|named|in|at|on|near|as|to|for|from|of))(?= )"
)
_SURELY: Final = re.compile(r"(?i)(?:really|seriously|honestly|truly|just kidding|not)\b")
_CLAUSE: Final = re.compile(r"(?i)(?:I|I'm|I've|my|we|we're|our)\b")
_NAME_OR_NUMBER: Final = re.compile(r"[^\W\d_a-z]|\d")
_ARTICLE: Final = re.compile(r"^(?:the|a|an|my|our|their|some|any|to) ")
_NO_SLOT: Final = re.compile(r"[^\w'+#-]+")


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence of a user.

    Attributes:
        text: The sentence, on one line.
        message: The position of its message in the conversation.
        first: Whether it is the first of its message.
        reply: Whether it begins an answer to a message of the assistant.
        before: The position of a message of the assistant that it repeats, or -1.
    """

    text: str
    message: int
    first: bool
    reply: bool = False
    before: int = -1

    @property
    def asks(self) -> bool:
        """Whether it is a question."""
        return self.text.rstrip("\"') ").endswith("?")

    @property
    def unsure(self) -> bool:
        """Whether its statement is uncertain."""
        return _UNSURE.search(self.text) is not None or not self.is_own

    @property
    def is_own(self) -> bool:
        """Whether the user means it: it is no joke, and nobody else is named who says it."""
        return not (_LAUGHING.search(self.text) or _ATTRIBUTED.search(self.text))

    @property
    def takes_back(self) -> bool:
        """Whether it says that the sentence before it was a joke or a mistake."""
        return _JOKE.fullmatch(self.text) is not None

    @property
    def sources(self) -> tuple[int, ...]:
        """The positions of the messages that state it."""
        return (self.message,) if self.before < 0 else (self.before, self.message)


def sentences(text: str, message: int, *, reply: bool = False) -> Iterator[Sentence]:
    """Yield the sentences of a message, without code, quotations and texts to work on.

    Of a message of more than 4,000 characters, only the beginning is read, without its last two
    sentences: one is cut off, and the text after the other is unknown.
    """
    is_cut = len(text) > _LONGEST_MESSAGE
    told = spoken(text[:_LONGEST_MESSAGE].translate(_APOSTROPHES))
    for number, piece in enumerate(_END.split(told)[: -2 if is_cut else None]):
        line = " ".join(piece.split()).lstrip("-*#\u2022 ")
        if line and len(line) <= _LONGEST_SENTENCE:
            yield Sentence(line, message, first=number == 0, reply=reply)
        reply = reply and len(line.split()) <= _SHORT


def without_lead(text: str) -> str:
    """Return a sentence or clause without "Well, " and the like before it or marks after it."""
    lead = _LEAD.match(text)
    return (text[lead.end() :] if lead else text).strip().rstrip(" .!?\u2026")


def clauses(sentence: str) -> list[str]:
    """Return the parts of a sentence with their own subject, without lead-ins."""
    return list(filter(None, map(without_lead, _JOINT.split(sentence)[:_MOST_CLAUSES])))


def repaired(text: str) -> str | None:
    """Return a sentence with its repaired words; as it is, if it has no repair.

    Returns:
        The sentence; `None` if it takes back something and says nothing instead that is understood.
    """
    found = _REPAIR.fullmatch(text)
    if found is None or _CLAUSE.match(found["after"]):
        return text
    before, after = found["before"], found["after"]
    if _SURELY.match(after):
        return before
    heads = list(_HEAD.finditer(before))
    head = heads[-1] if heads else None
    is_same = head is not None and after.casefold().startswith(f"{head[0].casefold()} ")
    if not (found["surely"] or is_same or _NAME_OR_NUMBER.match(after)):
        return text
    if head is None or len(after.split()) > _MOST_WORDS:
        return None
    return _joined(before, head, after)


def _joined(before: str, head: re.Match[str], after: str) -> str:
    """Return the words until the head, which stays unless the repair has one of its own."""
    end = head.start() if _HEAD.match(after) else head.end()
    return f"{before[:end].rstrip()} {after}"


def slot(text: str) -> str:
    """Return the part of a key for a noun phrase: lower case, no article, not too long."""
    lowered = _ARTICLE.sub("", text.casefold().strip()).replace("color", "colour")
    return _NO_SLOT.sub(" ", lowered).strip()[:_LONGEST_SLOT].strip()
