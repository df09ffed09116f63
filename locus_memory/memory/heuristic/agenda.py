"""The rules of the heuristic extractor for work, places and wishes for the agent."""

from __future__ import annotations

from typing import Final

from locus_memory.memory.heuristic.grammar import Rule, pattern
from locus_memory.memory.models import MemoryType

__all__ = ["AGENDA_RULES", "NOTE"]


def _project(source: str, key: str, content: str) -> Rule:
    return Rule(pattern(source), MemoryType.PROJECT, key, content, 0.6)


def _feedback(source: str, content: str) -> Rule:
    whole = pattern(rf"(?:please,? )?{source}$")
    return Rule(whole, MemoryType.FEEDBACK, "rule:{x}", content, 0.9, certain=False, whole=True)


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
        r"<I>(?:'ve| have)? <ADV>(?:decided|agreed|settled) (?:to|on|that) "
        r"(?P<x>[^.;!?\"]{4,200}?)$",
        "decision:{x}",
        "The user decided: {x}.",
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
        r"(?:we|I) <ADV>(?:track|keep|store|host|document|put) (?P<x>(?!<OTHER>)[\w' -]{2,60}?) "
        r"(?:in|on|at|under)"
        r" (?P<where>(?:the |our )?(?:(?:<URL>)|<CAP>)[^.;!?\"]{0,60}?)$",
        "{x}: {where}",
    ),
    _reference(
        r"(?P<x>(?:the |our |all )?(?:[\w-]+ ){0,2}?(?:bugs|issues|tasks|tickets|docs|documents"
        r"|designs|logs|metrics))"
        r" (?:are|live|get) (?:tracked |kept |stored |documented |collected )?in (?P<where>"
        r"(?:the |our )?(?:(?:<URL>)|<CAP>)"
        r"[^.;!?\"]{0,60}?)$",
        "{x}: {where}",
    ),
)

_ORDERS: Final = (
    _feedback(r"always (?P<x>(?:<DO>)\b<REST>)", "Always {x}."),
    _feedback(r"(?:never|don't ever|do not ever) (?P<x>(?:<DO>|do)\b<REST>)", "Never {x}."),
    _feedback(
        r"(?:don't|do not|stop) (?P<x>(?:<DO>|using|writing|adding|asking|calling)\b<REST>?)"
        r"(?: any ?more| ever again| again)",
        "Do not {x} any more.",
    ),
    _feedback(
        r"(?:from now on|from here on|going forward|in (?:the )?future|next time"
        r"|from today on),? (?P<x>(?!I\b|we\b|I'm|I'll|we'll|it\b|there)<REST>)",
        "From now on: {x}.",
    ),
    _feedback(
        r"(?P<x>(?:<DO>)\b<REST>) (?:from now on|going forward|in (?:the )?future)",
        "From now on: {x}.",
    ),
    _feedback(
        r"(?P<x>(?:when|whenever|if|each time|every time) (?:I|you|we) [^,]{3,100}, (?:please )?"
        r"(?:always |never |don't )?(?:<DO>)\b<REST>)",
        "{x}.",
    ),
    _feedback(
        r"I(?:'d| would)? (?:want|like|prefer|need) you (?:to )?(?P<x>always [^.]{3,200}"
        r"|never [^.]{3,200}|not to [^.]{3,200})",
        "The user wants the agent to {x}.",
    ),
)

NOTE: Final = Rule(
    pattern(
        r"(?:please,? |(?P<request>(?:can|could|will|would) you (?:please )?))?"
        r"(?:remember|don't forget|keep in mind|make a note|note)(?: (?:this|for me|for later))?"
        # Reminding of a story or cheering: "remember that day we met", "you got this".
        r"(?: that (?!you\b|(?:\w+ ){1,3}(?:I|we|you|they|he|she)\b|it's (?:never|always|ok"
        r"|okay)\b)|: ?"
        r"|, (?=my\b|I\b|I'm\b|our\b))(?P<x><REST>)$"
    ),
    MemoryType.USER,
    "note:{x}",
    "The user asks to remember: {x}.",
    0.8,
)
"""Anything the user asks to remember."""


AGENDA_RULES: Final[tuple[Rule, ...]] = (*_ORDERS, *_PLACES, *_WORK_IN_HAND)
"""Rules for feedback, references and projects."""
