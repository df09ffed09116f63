"""The wording of a message: its sentences, what its author does not state, and its requests."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from typing import Any, Final

from locus_memory._internal.lazy import compiled_later
from locus_memory.conversation.roles import is_memory_block, role_of

__all__ = [
    "FORGET",
    "affirmed",
    "as_user",
    "clauses",
    "is_staged",
    "last_statement",
    "plain",
    "sentences",
    "text_of",
    "to_remember",
    "uttered",
]

_LONGEST_READ, _LONGEST_MESSAGE, _MOST_SENTENCES = 4_000, 400, 2

_APOSTROPHES: Final = str.maketrans("\u2018\u2019\u02bc", "'''")
_SHORT_FORMS: Final = (
    (
        compiled_later(re.compile, r"(?i)\b(I|we|you|that|it|there)'(m|re|s)\b"),
        {"m": "am", "re": "are", "s": "is"},
    ),
    (compiled_later(re.compile, r"(?i)\b(name|birthday)'(s)(?= \S)(?! name)"), {"s": "is"}),
    (compiled_later(re.compile, r"(?i)\b(do|is|are)(n't)\b"), {"n't": "not"}),
    (compiled_later(re.compile, r"(?i)\b(can)('t)\b"), {"'t": "not"}),
)
_END: Final = compiled_later(
    re.compile, r"(?<!\b(?:St|Dr|Mr|Ms)\.)(?<!\bMrs\.)(?<=[.!?\u3002\uff01])\s+(?![a-z])"
)
_NOT_PLAIN: Final = compiled_later(
    re.compile, r"[\"\u201c\u201d\u201e\u00ab\u00bb`:?\uff1f\uff1a\n]"
)
_COURTESY: Final = compiled_later(
    re.compile,
    r"(?i)(?:hi|hello|hey|yes|no|ok|okay|thanks|thank you|good (?:morning|afternoon|evening)"
    r"|nice to meet you|please (?:keep|bear) (?:that|this|it) in mind"
    r"|please (?:remember|note) (?:that|this|it)|just so you know|for your information)"
    r"(?: there| very much| so much| again| in advance)?,?[.! ]*",
)
# A request after a statement, as in "I am vegan. Suggest a cake.", but not about its words.
_REQUEST: Final = compiled_later(
    re.compile,
    r"(?i)(?:please )?(?:book|order|find|recommend|suggest|show|plan|help|list|compare|explain"
    r"|search|look up|remind|give me|tell me|calculate)\b(?!.*\b(?:this|that|these|it|above"
    r"|synonyms?|sentences?|words?|translations?|mistakes?|errors?|grammar|verbs?|nouns?|subject)\b).*",
)
_LEAD: Final = compiled_later(
    re.compile,
    r"(?i)^(?:(?:(?:hi|hello|hey)(?: there)?|good (?:morning|afternoon|evening)|well|so|ok|okay|yes"
    r"|no|also|and|but|by the way|btw|fyi|actually|in fact|just so you know|for the record"
    r"|for your information|as (?:you know|I said)|currently|nowadays)[,!]? +){1,3}",
)
_TAIL: Final = compiled_later(
    re.compile,
    r"(?i),? (?:now|currently|nowadays|these days|at the moment|as well|too|by the way|btw)$",
)
_ADVERBS: Final = compiled_later(
    re.compile, r"(?i)^(I|we|I am|we are) (?:(?:now|currently|still|actually) )+"
)
_JOINT: Final = compiled_later(re.compile, r"(?i)(?:,? (?:and|but) |, )(?=(?:I|my|we)\b)")

_WORKS: Final = (
    r"(?:texts?|e-?mails?|letters?|prompts?|messages?|reviews?|tickets?|paragraphs?|bio|profile|cv"
    r"|resume|instructions|story|poem|novel|song|essay|article|draft|post|tweets?|dialog(?:ue)?"
    r"|monolog(?:ue)?|script|speech|the following|what i)"
)
_PLAY: Final = (
    r"\brole ?-?play|\bpretend|\byour character\b|\bscenario\b"
    r"|\blet(?:'s| us) (?:play|imagine|assume|suppose|say|write)\b"
)
_STAGED: Final = compiled_later(
    re.compile,
    rf"{_PLAY}|(?:^|[.!\n] ?)(?:imagine|suppose|assume|simulate|be (?:my|an?))\b"
    r"|\bact (?:as|like)\b|\bbehave like\b|\bplay the (?:part|role)\b|\byou play\b|\bmock interview"
    r"|\byou(?: are|'re) (?:now )?(?:an?|the|my)\b|\bI(?: will|'ll) (?:be|play) (?:the|your)\b"
    r"|\byou(?: will|'ll) (?:get|receive|see|be)\b|\brepeat after me\b|\btell (?:me )?a story\b"
    r"|\btranslat|\bproofread|\bparaphras|\brephras|\bgrammar\b"
    r"|\b(?:rewrit|summari[sz]|classif|label|tag|rate|extract|improv|optimi[sz]|correct|shorten"
    r"|review|edit|polish|fix|check|continu|finish)\w{0,4}\b[^.!?\n]{0,60}\b"
    rf"(?:sentences?|my (?:english|german|french|spanish)|{_WORKS}"
    r"|(?:this|these|each|each one|it)(?=[.:!\n]|$))"
    rf"|\b(?:writ|draft|compos|make|here)(?:'s|\w{{0,4}})\b[^.!?\n]{{0,60}}\b{_WORKS}"
    r"|```|~~~|^ *>|:[ ]*$|^(?:dear|to whom)\b[^\n]{0,60}\n|^(?:from|subject|to):"
    r"|^(?:\[[^\]\n]{1,30}\] ?)?\w[\w.-]{0,20} ?: .*\n.*\w ?: ",
    re.IGNORECASE | re.MULTILINE,
)
_PLAYED: Final = compiled_later(re.compile, _PLAY, re.IGNORECASE)

_DENIAL: Final = compiled_later(
    re.compile,
    r"(?i)(?P<who>(?:I|we|my [\w' ]{2,40}?)(?: am| are| is)?)"
    r" (?:do not|not|no longer) (?P<rest>.+)",
)
_NO_MORE: Final = compiled_later(re.compile, r"(?i) (?:any ?more|any longer|at all)$")

_PREFACE: Final = compiled_later(
    re.compile,
    r"(?i)(?:(?:so|ok|okay|got it|noted|great|right|sure|and|just to confirm|to confirm"
    r"|if I understand (?:you )?correctly|you said(?: that)?|I understand(?: that)?)[,:.!]? ){1,3}",
)
_TAG: Final = compiled_later(
    re.compile,
    r"(?i)(?:,| -) ?(?:right|correct|is that (?:right|correct)|is it not|(?:do|are) (?:not )?you"
    r"|(?:do|are) you not|yes|no)$",
)
_CHECK: Final = compiled_later(re.compile, r"(?i)(?:is that |am I )?(?:right|correct)\?")
_TURNED: Final = (
    (compiled_later(re.compile, r"(?i)is your (name|birthday|home) (?=\S)"), r"my \1 is "),
    (compiled_later(re.compile, r"(?i)(?:are you|you are) "), "I am "),
    (compiled_later(re.compile, r"(?i)(?:do you |you )"), "I "),
    (compiled_later(re.compile, r"(?i)your "), "my "),
    (compiled_later(re.compile, r"(?i)(?:should I|shall I|I will) (?=always |never )"), ""),
)


def text_of(message: Any) -> str:
    """Return what is read of a message: its text's first 4,000 characters, or nothing."""
    content = message.content
    return content[:_LONGEST_READ].translate(_APOSTROPHES) if isinstance(content, str) else ""


def is_staged(messages: Sequence[Any]) -> bool:
    """Return whether a role is given, a pretence begins, or a user hands in a text to work on."""
    staged = {"user": _STAGED, "assistant": _PLAYED}
    return any(
        role_of(each) in staged and staged[role_of(each)].search(text_of(each))
        for each in messages
        if not is_memory_block(each)
    )


def sentences(text: str) -> list[str]:
    """Return the sentences of a message in its author's own words, without courtesies.

    Short forms are spelled out: "I'm" is "I am". A request at the end is left out. Of a message
    that has more than two sentences, a quotation, a question, a colon or a second line, there are
    none.
    """
    if len(text) > _LONGEST_MESSAGE or _NOT_PLAIN.search(text):
        return []
    told = uttered(text)
    if len(told) > _MOST_SENTENCES:
        return []
    return [plain(each) for each in told[:1] + [e for e in told[1:] if not _REQUEST.fullmatch(e)]]


def uttered(text: str) -> list[str]:
    """Return the sentences of a text as they are, without courtesies such as "Thanks!"."""
    return [each for each in _END.split(text) if not _COURTESY.fullmatch(each)]


def clauses(sentence: str) -> list[str]:
    """Return the parts of a sentence with a subject each: "I am Bo, and I live in Graz" has two."""
    parts = _JOINT.split(_LEAD.sub("", sentence, count=1))
    return [_ADVERBS.sub(r"\1 ", _TAIL.sub("", _LEAD.sub("", each, count=1))) for each in parts]


def affirmed(clause: str) -> str | None:
    """Return what a clause denies, such as "I live in Rome" of "I do not live in Rome"."""
    denial = _DENIAL.fullmatch(_NO_MORE.sub("", clause))
    return f"{denial['who']} {denial['rest']}" if denial else None


def last_statement(text: str) -> str:
    """Return the last sentence of an assistant's message, in the words of the user it is about."""
    told = _END.split(text.strip())
    if len(told) > 1 and _CHECK.fullmatch(told[-1]):
        told.pop()
    return as_user(_TAG.sub("", plain(_PREFACE.sub("", told[-1], count=1)).rstrip("?.! ")))


def as_user(text: str) -> str:
    """Return a sentence to the user as the user says it: "You live" is "I live"."""
    for pattern, words in _TURNED:
        if found := pattern.match(text):
            return found.expand(words) + text[found.end() :]
    return ""


def plain(sentence: str) -> str:
    """Return a sentence on one line, with its short forms spelled out, without its full stop."""
    for pattern, words in _SHORT_FORMS:
        sentence = pattern.sub(partial(_spelled, words), sentence)
    return " ".join(sentence.split()).rstrip(" .!\u3002\uff01")


def _spelled(words: dict[str, str], found: re.Match[str]) -> str:
    joint = "" if found[2] == "'t" else " "
    return f"{found[1]}{joint}{words[found[2].lower()]}"


_ASKED_FOR: Final = r"(?P<x>[^\n]{2,400})"
_SOURCES: Final = (
    # English
    r"(?:please,? )?(?:remember|keep in mind|bear in mind|make a note|note to self|note"
    r"|(?:don't|do not) forget)(?: (?:for me|for later|this|please))?"
    r"(?: that |: ?|, | (?=(?:I|I'm|my|our) )| to (?=(?:always|never) ))"
    r"(?!(?:you|it|it's|this|these|those|that|he|she|they|there|here|when|how|what|who|why)\b"
    r"|(?:one |the )?(?:time|day|night|guy|girl|song|summer|trip|one)\b)" + _ASKED_FOR,
    # German
    r"(?:bitte )?(?:merke? dir|merken sie sich|notiere? (?:dir)?|notieren sie|denke? daran"
    r"|vergiss nicht|behalte?)(?: bitte)?(?:,? dass |: ?)" + _ASKED_FOR,
    # French
    r"(?:s'il (?:te|vous) pla[i\u00ee]t,? )?(?:souviens-toi|souvenez-vous|rappelle-toi"
    r"|rappelez-vous|retiens|retenez|n'oublie pas|n'oubliez pas|notez?)(?: bien)?(?: que | (?=qu')"
    r"| ?: ?)" + _ASKED_FOR,
    # Spanish
    r"(?:por favor,? )?(?:recu[e\u00e9]rd[ae](?:me)?|acu[e\u00e9]rdate(?: de)?|anota|apunta"
    r"|no (?:te )?olvides|ten en cuenta)(?:,? por favor,?)?(?: que |: ?)" + _ASKED_FOR,
    # Italian
    r"(?:per favore,? )?(?:ricorda(?:ti)?|ricordi|tieni a mente|annota|non dimenticare)"
    r"(?:,? per favore,?)?(?: che |: ?)" + _ASKED_FOR,
    # Portuguese
    r"(?:por favor,? )?(?:lembr[ea](?:-se|-te)?|anot[ea]|n[a\u00e3]o (?:se )?esque\u00e7as?"
    r"|tenha em mente)(?:,? por favor,?)?(?: de)?(?: que |: ?)" + _ASKED_FOR,
    # Dutch
    r"(?:alsjeblieft,? )?(?:onthoud(?:t u)?|noteer|vergeet niet)(?: alsjeblieft)?(?:,? dat |: ?)"
    + _ASKED_FOR,
    # Russian
    r"(?:пожалуйста,? )?(?:запомни|помни|учти|запиши|не забудь|не забывай)(?:те)?"
    r"(?:,? пожалуйста)?(?:,? что |: ?)" + _ASKED_FOR,
    # Arabic
    r"(?:من فضلك،? ?)?(?:تذك\u0651?ري?|احفظي?|لا تنسى?)(?: (?:أن|ان|أن\u0651) |: ?| (?=أن|ان|بأن))"
    + _ASKED_FOR,
    # Hindi
    r"(?:कृपया )?(?:याद (?:रखो|रखना|रखिए|रखें|रखिएगा)|मत भूलना)(?:,? कि |: ?)" + _ASKED_FOR,
    # Chinese
    r"(?:请|請|麻烦)?你?(?:帮我|幫我)?(?:记住|記住|记得|記得|记下|記下|别忘了|不要忘记)(?:一下)?"
    r"[\uff0c,\uff1a:\u3001 ]*" + _ASKED_FOR,
    # Japanese
    r"(?:覚えて(?:おいて)?(?:ください|下さい|ね)?|忘れないで(?:ください|下さい|ね)?)"
    r"[\uff1a:\u3001,\u3002 ]*" + _ASKED_FOR,
    (
        r"(?P<x>[^\n]{2,400}?)(?:という)?(?:こと|の)?を?(?:覚えて|忘れないで)"
        r"(?:おいて)?(?:ください|下さい|ね)?"
    ),
)

_REQUESTS: Final = tuple(
    compiled_later(partial(re.compile, source, re.IGNORECASE)) for source in _SOURCES
)

FORGET: Final = compiled_later(
    partial(
        re.compile,
        r"(?:please,? )?forget (?:(?:all|everything|anything)(?: (?:that )?(?:you know|I (?:have )?"
        r"(?:said|told you)))? about (?P<all>me|us|myself)"
        r"|(?:all|everything|anything|what)"
        r"(?: (?:that )?(?:you know|I (?:have )?(?:said|told you)))? about"
        r" (?:the |my |our )?(?P<about>[^\n]{2,200})"
        r"|that (?P<that>[^\n]{2,200})|(?:about )?my (?P<slot>[\w ]{2,40}))",
        re.IGNORECASE,
    )
)
"""A request to forget: `that` something, what is `about` something, a `slot`, or everything."""


def to_remember(text: str) -> str | None:
    """Return what a message asks to remember, if the whole of it does."""
    said = uttered(text.strip())
    told = said[0].rstrip(" .!\u3002\uff01") if len(said) == 1 else ""
    found = next(filter(None, (each.fullmatch(told) for each in _REQUESTS)), None)
    if found is None or told.endswith(("?", "\uff1f", "\u061f")):
        return None
    words = found["x"].strip()
    # One word alone means nothing, and it may be a password.
    return words if " " in words or not words.isascii() else None
