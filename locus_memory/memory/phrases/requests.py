"""Requests to remember, and to forget: messages that as a whole are one."""

from __future__ import annotations

import re
from functools import partial
from typing import Final

from locus_memory._internal.lazy import compiled_later
from locus_memory.memory.phrases.wording import uttered

__all__ = ["FORGET", "to_remember"]

_X: Final = r"(?P<x>[^\n]{2,400})"
_SOURCES: Final = (
    # English
    r"(?:please,? )?(?:remember|keep in mind|bear in mind|make a note|note to self|note"
    r"|(?:don't|do not) forget)(?: (?:for me|for later|this|please))?"
    r"(?: that |: ?|, | (?=(?:I|I'm|my|our) )| to (?=(?:always|never) ))"
    r"(?!(?:you|it|it's|this|these|those|that|he|she|they|there|here|when|how|what|who|why)\b"
    r"|(?:one |the )?(?:time|day|night|guy|girl|song|summer|trip|one)\b)" + _X,
    # German
    r"(?:bitte )?(?:merke? dir|merken sie sich|notiere? (?:dir)?|notieren sie|denke? daran"
    r"|vergiss nicht|behalte?)(?: bitte)?(?:,? dass |: ?)" + _X,
    # French
    r"(?:s'il (?:te|vous) pla[i\u00ee]t,? )?(?:souviens-toi|souvenez-vous|rappelle-toi"
    r"|rappelez-vous|retiens|retenez|n'oublie pas|n'oubliez pas|notez?)(?: bien)?(?: que | (?=qu')"
    r"| ?: ?)" + _X,
    # Spanish
    r"(?:por favor,? )?(?:recu[e\u00e9]rd[ae](?:me)?|acu[e\u00e9]rdate(?: de)?|anota|apunta"
    r"|no (?:te )?olvides|ten en cuenta)(?:,? por favor,?)?(?: que |: ?)" + _X,
    # Italian
    r"(?:per favore,? )?(?:ricorda(?:ti)?|ricordi|tieni a mente|annota|non dimenticare)"
    r"(?:,? per favore,?)?(?: che |: ?)" + _X,
    # Portuguese
    r"(?:por favor,? )?(?:lembr[ea](?:-se|-te)?|anot[ea]|n[a\u00e3]o (?:se )?esque\u00e7as?"
    r"|tenha em mente)(?:,? por favor,?)?(?: de)?(?: que |: ?)" + _X,
    # Dutch
    r"(?:alsjeblieft,? )?(?:onthoud(?:t u)?|noteer|vergeet niet)(?: alsjeblieft)?(?:,? dat |: ?)"
    + _X,
    # Russian
    r"(?:пожалуйста,? )?(?:запомни|помни|учти|запиши|не забудь|не забывай)(?:те)?"
    r"(?:,? пожалуйста)?(?:,? что |: ?)" + _X,
    # Arabic
    r"(?:من فضلك،? ?)?(?:تذك\u0651?ري?|احفظي?|لا تنسى?)(?: (?:أن|ان|أن\u0651) |: ?| (?=أن|ان|بأن))"
    + _X,
    # Hindi
    r"(?:कृपया )?(?:याद (?:रखो|रखना|रखिए|रखें|रखिएगा)|मत भूलना)(?:,? कि |: ?)" + _X,
    # Chinese
    r"(?:请|請|麻烦)?你?(?:帮我|幫我)?(?:记住|記住|记得|記得|记下|記下|别忘了|不要忘记)(?:一下)?"
    r"[\uff0c,\uff1a:\u3001 ]*" + _X,
    # Japanese
    r"(?:覚えて(?:おいて)?(?:ください|下さい|ね)?|忘れないで(?:ください|下さい|ね)?)"
    r"[\uff1a:\u3001,\u3002 ]*" + _X,
    (
        r"(?P<x>[^\n]{2,400}?)(?:という)?(?:こと|の)?を?(?:覚えて|忘れないで)"
        r"(?:おいて)?(?:ください|下さい|ね)?"
    ),
)

_ASKED: Final = tuple(
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
    found = next(filter(None, (each.fullmatch(told) for each in _ASKED)), None)
    if found is None or told.endswith(("?", "\uff1f", "\u061f")):
        return None
    words = found["x"].strip()
    # One word alone means nothing, and it may be a password.
    return words if " " in words or not words.isascii() else None
