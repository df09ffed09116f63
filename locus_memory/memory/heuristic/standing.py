"""Whether the words of a fact are understood without the text around them."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["is_dated", "is_note", "is_order", "is_taste", "stands", "trimmed"]

# Words that point to something said elsewhere.
_POINTING: Final = re.compile(
    r"(?i)\b(?:its?|it's|this|these|those|he|he's|she|she's|him|her|his|hers|here|there|you|you're"
    r"|your|yours|ones?|mine|another|such|former|latter|else|something|anything|someone|somebody"
    r"|nothing|together|same|itself|stuff|above|below|aforementioned)\b"
)
_THAT: Final = re.compile(
    r"(?i)(?:^|\b(?:to|in|of|on|at|for|with|about|from|by|into|like|than|and|or|as|use|do|say|ask"
    r"|mention|call|check|make|change|test|run|write|send|remove|delete|add) )that\b|\bthat$"
)
_THEY: Final = re.compile(r"(?i)\b(?:they|them|their|theirs|they're)\b")
_MANY: Final = re.compile(
    r"(?i)\b(?:people|children|everyone|everybody|others|folks|men|women|\w{3,}[^s\W]s)\b"
)
_TAIL: Final = re.compile(
    r"(?i)(?: (?:recently|lately|sometimes|nowadays|such|the most|the best|at the moment|right now"
    r"|currently|now|too|as well|again|though|lol|haha+|so far|these days))+$"
)
_DANGLING: Final = re.compile(
    r"(?i)(?:^| )(?:about|of|to|for|with|and|or|the|an?|my|our|at|in|on|as|than|if|because|is|are"
    r"|very|so|too|such)$"
)
# A moment that only the day of the message tells.
_UNDATED: Final = re.compile(
    r"(?i)\b(?:today|tonight|tomorrow|yesterday|now|soon|later|asap"
    r"|(?:this|next|last|coming|following) (?:\w+ )?(?:week|month|year|quarter|spring|summer|autumn"
    r"|fall|winter|weekend|morning|afternoon|evening|night|time|sprint|release|(?:mon|tues|wednes"
    r"|thurs|fri|satur|sun)day)s?"
    r"|(?:in|within) (?:about )?(?:an?|the next|a few|a couple of|\d+|two|three|four|five|six|seven"
    r"|eight|nine|ten|twelve) (?:\w+ )?(?:minute|hour|day|week|month|year)s?"
    r"|(?:minute|hour|day|week|month|year)s? (?:ago|from now)|the weekend"
    r"|end of (?:the |this )?(?:day|week|month|year|quarter|sprint))\b"
)
_WEEKDAY: Final = re.compile(
    r"(?i)(?<!every )(?<!each )(?<!any )(?<!on a )\b(?:mon|tues|wednes|thurs|fri|satur|sun)day\b"
    r"(?! (?:morning|afternoon|evening|night)s\b|s\b)"
)
_EMPTY: Final = frozenset(
    [
        "activities",
        "things",
        "stuff",
        "places",
        "people",
        "work",
        "life",
        "plans",
        "fun",
        "change",
        "progress",
        "everything",
        "nothing",
        "content",
        "option",
        "options",
        "way",
        "ways",
        "idea",
        "ideas",
        "part",
        "parts",
        "bit",
        "lot",
        "lots",
        "some",
        "any",
        "more",
        "it",
        "all",
        "job",
        "jobs",
        "thing",
        "place",
        "time",
        "times",
        "moment",
        "moments",
        "day",
        "days",
        "issue",
        "issues",
        "fix",
        "problem",
        "problems",
        "bug",
        "task",
        "tasks",
        "project",
        "projects",
    ]
)
_REACTION: Final = re.compile(
    r"(?i)^(?:to )?(?:think|say|see|hear|know|believe|imagine|hope|admit|point out)\b"
    r"|(?:^|'s? (?:\w+ )?)(?:idea|ideas|suggestion|suggestions|proposal|answer|answers|approach"
    r"|version|point|attitude|vibe|vibes|sound|look|plan)$"
    r"|\b(?:option|choice|variant|plan) (?:\w|\d+)$"
    r"|^(?:the|number|option|choice|version|variant|plan|door) (?:\w|\d+|first|second|third|last)$"
    r"|\b(?:first|second|third|last|new|other|old|red|blue|green) ones?\b"
    # Photographs or people: only the talk around it tells.
    r"|\bshooting\b(?!.*\b(?:hoops|photo\w*|pictures|video\w*|films?|landscapes)\b)"
)
_AT_HAND: Final = re.compile(
    r"(?i)\bthe \w+ (?:that |which )?(?:I|we) (?:just |have |'ve )?(?:sent|gave|given|pasted|shared"
    r"|attached|uploaded|wrote|posted|linked|mentioned|showed)\b"
)
_IDIOM: Final = re.compile(r"(?i)\b(?:keep|make|spell|take|leave) it\b")
_OPENING: Final = re.compile(
    r"(?i)^(?:it|it's|its|he|he's|she|she's|they|they're|them|him|her|this|that|that's|these|those"
    r"|there|here|when|what|how|why|who)\b"
)


def trimmed(words: str) -> str:
    """Return a noun phrase without adverbs and half a phrase at its end."""
    return _TAIL.sub("", words.strip()).strip(" ,;:-\u2013\u2014")


def is_dated(words: str) -> bool:
    """Return whether no moment of a text depends on the day on which it was said."""
    has_number = re.search(r"\d", words) is not None
    return _UNDATED.search(words) is None and (has_number or _WEEKDAY.search(words) is None)


def stands(words: str) -> bool:
    """Return whether a part of a fact names what it is about, and is whole."""
    return (
        _POINTING.search(words) is None
        and _THAT.search(words) is None
        and not _has_no_antecedent(words)
        and _DANGLING.search(words) is None
        and words.casefold().removeprefix("a ").removeprefix("the ") not in _EMPTY
        and is_dated(words)
    )


def is_taste(words: str) -> bool:
    """Return whether a part of a fact is something to like, not a reaction to what was said."""
    return stands(words) and _REACTION.search(words) is None


def is_order(words: str) -> bool:
    """Return whether an order for the agent is understood without the conversation."""
    text = _IDIOM.sub(" ", words)
    head, comma, tail = text.partition(", ")
    if comma and head.lower().startswith(("when", "if", "each", "every")):
        text = head if _THAT.search(tail) is None and not _this(tail) else "this"
    return (
        _THAT.search(text) is None
        and not _this(text)
        and not _AT_HAND.search(words)
        and not re.search(r"(?i)\b(?:its?|it's|he|she|him|her|his|they|them|their|ones?)\b", text)
        and not re.search(r"(?i)\b(?:yet|again|today|tonight|tomorrow|right now)$", text)
    )


def is_note(words: str) -> bool:
    """Return whether what the user asks to remember says what it is about, and when."""
    return (
        _OPENING.search(words) is None
        and not re.search(r"(?i)\b(?:this|these|those|here|above|below)\b", words)
        and is_dated(words)
    )


def _this(text: str) -> bool:
    return re.search(r"(?i)\b(?:this|these|those|here|there|above|below)\b", text) is not None


def _has_no_antecedent(words: str) -> bool:
    they = _THEY.search(words)
    return they is not None and _MANY.search(words[: they.start()]) is None
