"""Confirmations: what the assistant said just before, in the words of the user who agrees."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from locus_memory.memory.heuristic.clauses import Sentence, sentences
from locus_memory.memory.heuristic.voice import as_user

__all__ = ["agreed", "confirmed"]

_PAUSE: Final = r"[,.! \u2013\u2014-]+"
_MORE: Final = (
    r"(?:exactly|please|that's (?:right|it|correct|true|perfect|exactly (?:it|right))|correct|right"
    r"|precisely|perfect|great|indeed|thanks|thank you|do (?:that|so|it)|please do|it is|i do|i am"
    r"|we do|you're right|you are right|sounds good|like that|just like that|absolutely|definitely"
    r"|yes|that's what i (?:want|meant|mean|said)|that's how i (?:want|like) it)"
)
_YES: Final = re.compile(
    r"(?i)(?:oh |ah |ok(?:ay)?,? )?(?:yes|yeah|yep|yup|correct|exactly|precisely|absolutely|indeed"
    r"|true|that's (?:right|correct|true|it)|that is (?:right|correct|true)|you're right"
    r"|you are right|you got it|spot on|bingo|affirmative"
    r"|(?:that's )?exactly (?:it|right|that|what i (?:want|wanted|meant|mean)))"
    rf"(?:{_PAUSE}{_MORE}){{0,4}}[.! ]*"
)
# These accept a proposal, but do not say that a statement is true.
_ACCEPTED: Final = re.compile(
    rf"(?i)(?:perfect|please do|yes please|sounds good|agreed|love it|excellent)(?:{_PAUSE}{_MORE})"
    r"{0,4}[.! ]*"
)
_ALWAYS: Final = re.compile(
    r"(?i)(?:(?:yes|yeah|perfect|great|exactly|good|right|ok|okay|please|and|that's (?:right|it"
    r"|perfect|great)|thanks|love it|nice|excellent)"
    rf"{_PAUSE}){{0,4}}(?:always (?:do|write|answer|work|keep|format) (?:(?:it|that|them) )?"
    r"(?:like (?:that|this)|that way|this way|so|that)"
    r"|do (?:it|that|them)(?: (?:like (?:that|this)|(?:this|that) way))? (?:always|every time"
    r"|from now on|in (?:the )?future|going forward)"
    r"|keep (?:doing (?:it|that|this)(?: (?:like that|that way))?|it (?:like that|that way))"
    r"|(?:just )?like (?:that|this),? (?:always|from now on|every time|in future)"
    rf"|(?:always|from now on|every time|in (?:the )?future))(?:{_PAUSE}please)?[.! ]*"
)
_PREFACE: Final = re.compile(
    r"(?i)(?:(?:so|ok|okay|got it|understood|noted|i see|alright|all right|sure|sorry|great|right"
    r"|just to confirm|to confirm|just to be sure|if i understand(?: you)? correctly"
    r"|if i understood(?: you)? correctly|in other words|you mean(?: that)?|you said(?: that)?"
    r"|i understand(?: that)?|it sounds like|am i right that|is it (?:right|true|correct) that"
    r"|let me confirm|and|then)\b[,:.! ]*)+"
)
_TAG: Final = re.compile(
    r"(?i)(?:(?:,| -| \u2013| \u2014) ?(?:right|correct|is that (?:right|correct|so)"
    r"|isn't (?:it|that so)|don't you|aren't you|do you|are you|yes|no|am i right))? ?[?.! ]+$"
)
_CHECK: Final = re.compile(
    r"(?i)(?:is that|did i get that|have i got that|am i) (?:right|correct)\?|(?:right|correct)\?"
)
_OFFER: Final = re.compile(
    r"(?i)(?:(?:should|shall|can|may) I|do you want me to|would you like me to|want me to"
    r"|you(?:'d| would)? (?:want|like|prefer) me to|(?:I will|I'll|I should|let me)|we should"
    r"|I(?:'d| would)? (?:suggest|propose) (?:to|that (?:I|we))) (?:now |then |therefore )?"
    r"(?P<x>.+)$"
)
_FACT: Final = re.compile(
    r"(?i)(?:(?P<do>do you )(?:still )?|(?P<are>are you )(?:still )?|(?P<is>is your (?P<what>name"
    r"|birthday|home) )|(?P<told>(?:you|you're|you've|your)\b))"
)
_LASTING: Final = re.compile(
    r"(?i)\b(?:always|never|from now on|going forward|in (?:the )?future|every time|any ?more)\b"
)
_LAST = 2000
_READ = 3


def confirmed(said: Sequence[Sentence], answer: str, place: int) -> list[Sentence]:
    """Return what the user's sentences confirm, in the user's words.

    Args:
        said: The sentences of the user's message.
        answer: The message of the assistant just before it.
        place: The position of that message.
    """
    if not said:
        return []
    always = any(_ALWAYS.fullmatch(each.text) for each in said[:_READ])
    yes = _YES.fullmatch(said[0].text) is not None
    accepts = yes or _ACCEPTED.fullmatch(said[0].text) is not None
    if not (always or accepts):
        return []
    told = [_voiced(each, always=always, is_fact=yes) for each in _proposals(answer, place)]
    return [
        Sentence(text, said[0].message, first=False, reply=True, before=place)
        for text in filter(None, told)
    ]


def agreed(said: Sequence[Sentence], answer: str) -> str | None:
    """Return what the assistant offers to do at the end of an answer, if the user accepts it."""
    if not said or not (_YES.fullmatch(said[0].text) or _ACCEPTED.fullmatch(said[0].text)):
        return None
    last = [each.text for each in sentences(answer[-_LAST:], said[0].message)][-1:]
    offers = (_OFFER.match(_plain(each)) for each in last)
    return next((as_user(offer["x"]) for offer in offers if offer), None)


def _proposals(answer: str, place: int) -> list[str]:
    """Return the last sentence, or those before a "Right?" or a full stop."""
    told = [each.text for each in sentences(answer[-_LAST:], place)]
    if told and _CHECK.fullmatch(told[-1]):
        return told[-1 - _READ : -1]
    if told and told[-1].endswith("?"):
        return told[-1:]
    return told[-_READ:]


def _voiced(proposal: str, *, always: bool, is_fact: bool) -> str | None:
    """Return a proposal as the user's order or statement, or `None` if it is neither."""
    text = _plain(proposal)
    if offer := _OFFER.match(text):
        return _order(as_user(offer["x"]), always=always)
    fact = _FACT.match(text)
    if not fact or not is_fact or re.search(r"(?i) or ", text):
        return None
    rest = text[fact.end() :]
    if fact["do"]:
        return f"I {as_user(rest)}"
    if fact["are"]:
        return f"I am {as_user(rest)}"
    if fact["is"]:
        return f"My {fact['what']} is {rest}"
    return as_user(text)


def _plain(proposal: str) -> str:
    """Return a proposal without "So, " before it and ", right?" after it."""
    preface = _PREFACE.match(proposal)
    return _TAG.sub("", proposal[preface.end() :] if preface else proposal)


def _order(text: str, *, always: bool) -> str | None:
    if text.lower().startswith("not "):
        text = f"{'never' if always else 'don' + chr(39) + 't'} {text[4:]}"
    if _LASTING.search(text):
        return text
    return f"always {text}" if always and not text.startswith("never ") else None
