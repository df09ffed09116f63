"""The rules of the heuristic extractor for work, places and notes."""

from __future__ import annotations

from typing import Final

from locus_memory.memory.heuristic.grammar import Rule, pattern
from locus_memory.memory.heuristic.standing import is_note
from locus_memory.memory.models import MemoryType

__all__ = ["AGENDA_RULES", "NOTE"]


def _project(source: str, key: str, content: str) -> Rule:
    return Rule(pattern(source), MemoryType.PROJECT, key, content, 0.6)


def _reference(source: str, content: str) -> Rule:
    whole = pattern(source)
    return Rule(whole, MemoryType.REFERENCE, "where:{x}", content, 0.6, whole=True)


_WORK_IN_HAND: Final = (
    _project(
        r"(?:the|our|my) (?P<what>(?:[\w-]+ ){0,4}?deadline)(?P<of> for [^.,;!?]{2,60}?)?(?:'s"
        r"| is| has been"
        r" (?:moved|set|pushed)(?: back)? to) (?!not\b|in the past)<WHEN>$",
        "{what} {of}",
        "The {what} {of} is {when}.",
    ),
    _project(
        r"(?:the|our|my) (?P<what>(?:[\w-]+ ){0,4}?[\w-]+) (?:is|are) due (?:on |by )?"
        r"(?P<when>[^.;!?()\"]{3,60}?)$",
        "deadline:{what}",
        "The {what} is due {when}.",
    ),
    _project(
        r"(?:the|our|my) (?P<what>(?:[\w-]+ ){0,3}?(?:launch|release|go-live|demo|milestone"
        r"|kickoff))"
        r"(?: date)?(?:'s| is) (?:planned for |scheduled for |on |set for )"
        r"(?P<when>[^.;!?()\"]{3,60}?)$",
        "date:{what}",
        "The {what} is on {when}.",
    ),
    _project(
        r"<I>(?:'ve| have)? <ADV>(?:decided|agreed|settled) "
        r"(?:to (?P<x>\w+ [^.;!?\"]{4,200}?)"
        r"|(?:on|that) (?!(?:is|was|it|there)\b|the \w+$|(?:[\w-]*\d[\w-]*|two|three|four|five|six"
        r"|seven|eight|nine|ten|twenty|fifty|(?:\w+ )?hundred|(?:\w+ )?thousand)$)"
        r"(?P<y>[^.;!?\"]{4,200}?))$",
        "decision:{x}{y}",
        "The user decided: {x}{y}.",
    ),
    _project(
        r"(?:my|our) (?:main |current |long-term |next |ultimate )*goal(?:s)?"
        r"(?: for [^.,;!?]{2,40})? (?:is|are)"
        r" (?:to )?(?P<x>[^.;!?\"]{4,200}?)$",
        "goal",
        "The user's goal: {x}.",
    ),
    _project(
        r"<IM> <ADV>(?:working on|building|developing|training for|preparing for|writing) "
        r"(?!<OTHER>|(?:stuff|things)\b)"
        r"(?P<x><THING>)<END>",
        "working on:{x}",
        "The user is working on {x}.",
    ),
    _project(
        r"we <ADV>use (?!<OTHER>)(?P<x><THING>) for (?!<OTHER>)(?P<what><THING>)<END>",
        "uses:{what}",
        "The user's team uses {x} for {what}.",
    ),
)

_PLACES: Final = (
    _reference(
        r"(?P<x>(?:the|our|my) [\w' -]{2,60}?)(?:'s| is| are| lives?| can be found| (?:is|are) "
        r"(?:located|stored"
        r"|kept|hosted))(?: (?:at|in|on|under|here))?:? (?P<where><URL>)",
        "{x}: {where}",
    ),
    _reference(
        r"here(?:'s| is| are) (?P<x>(?:the|our|my|a) [\w' -]{2,60}?)(?: link)?: (?P<where><URL>)",
        "{x}: {where}",
    ),
    _reference(
        r"(?:we|I) <ADV>(?:track|keep|store|host|document|put) (?P<x>(?!<OTHER>)[\w' -]{0,40}?"
        r"\b(?:bugs|issues|tasks|tickets|docs|documents|documentation|designs|logs|metrics|code|notes"
        r"|files|data|backups|secrets|recipes|roadmap|backlog|plans|specs|requirements|requests"
        r"|features|decisions|repos|repositories|photos|images|builds|releases|models|results)) "
        r"(?:in|on|at|under)"
        r" (?P<where>(?:the |our )?(?:(?:<URL>)|<CAP>)[^.;!?\"]{0,60}?)$",
        "{x}: {where}",
    ),
    _reference(
        r"(?P<x>(?:the |our |all )?(?:[\w-]+ ){0,2}?(?:bugs|issues|tasks|tickets|docs|documents"
        r"|designs|logs|metrics))"
        r" (?:(?:are|get) (?=tracked|kept|stored|documented|collected)|live )"
        r"(?:tracked |kept |stored |documented |collected )?in (?P<where>"
        r"(?:the |our )?(?:(?:<URL>)|<CAP>)"
        r"[^.;!?\"]{0,60}?)$",
        "{x}: {where}",
    ),
)

NOTE: Final = Rule(
    pattern(
        r"(?:please,? |(?P<request>(?:can|could|will|would) you (?:please )?))?"
        r"(?:remember|don't forget|keep in mind|make a note|note)(?: (?:this|for me|for later))?"
        # Reminding of a story or cheering: "remember that day we met", "you got this".
        r"(?: that (?!you\b|(?:\w+ ){1,3}(?:I|we|you|they|he|she)\b|it's (?:never|always|ok"
        r"|okay)\b)|: ?"
        r"| (?=(?:I'm|I am)\b|(?:my|our) [^.!?]{2,60} (?:is|are)\b)"
        r"|, (?=my\b|I\b|I'm\b|our\b))(?P<x><REST>)$"
    ),
    MemoryType.USER,
    "note:{x}",
    "The user asks to remember: {x}.",
    0.8,
    check=is_note,
)
"""Anything the user asks to remember."""


AGENDA_RULES: Final[tuple[Rule, ...]] = (*_PLACES, *_WORK_IN_HAND)
"""Rules for references and projects."""
