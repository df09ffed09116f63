"""Wishes for the agent and corrections: their rules, and what they change."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from locus_memory.memory.heuristic.clauses import Sentence, slot
from locus_memory.memory.heuristic.grammar import Rule, pattern
from locus_memory.memory.heuristic.standing import is_order, stands
from locus_memory.memory.heuristic.voice import third_person
from locus_memory.memory.models import MemoryChange, MemoryType

__all__ = ["ORDERS", "allowed_again", "asked_for", "base_form", "displaced", "replaced"]


def _order(source: str, content: str, key: str = "rule:{x}", *, reply: bool = False) -> Rule:
    whole = pattern(rf"(?:please,? )?(?:just )?{source}(?:,? please)?$")
    return Rule(
        whole, MemoryType.FEEDBACK, key, content, 0.9, whole=True, reply=reply, check=is_order
    )


_Facts = Mapping[tuple[MemoryType, str], str]

_VERBS: Final = [
    "use",
    "write",
    "add",
    "include",
    "ask",
    "call",
    "put",
    "start",
    "end",
    "begin",
    "apologise",
    "apologize",
    "repeat",
    "explain",
    "mention",
    "suggest",
    "assume",
    "format",
    "comment",
    "mock",
    "answer",
    "reply",
    "respond",
    "summarise",
    "summarize",
    "translate",
    "quote",
    "cite",
    "recommend",
    "commit",
    "push",
    "deploy",
    "send",
    "speak",
    "talk",
    "address",
    "offer",
    "propose",
    "provide",
    "print",
    "log",
    "generate",
    "create",
    "import",
    "rename",
    "refactor",
    "skip",
    "guess",
    "hedge",
    "invent",
    "abbreviate",
    "nest",
]
_GERUNDS: Final = {
    "put": "putting",
    "begin": "beginning",
    "commit": "committing",
    "log": "logging",
    "skip": "skipping",
}


def _gerund(verb: str) -> str:
    return _GERUNDS.get(verb) or (verb.removesuffix("e")) + "ing"


_BASES: Final = {_gerund(verb): verb for verb in _VERBS} | {"being": "be"}
_MANNER: Final = (
    r"(?:so |too |overly |that )?(?:formal|informal|verbose|wordy|chatty|brief|terse|vague|polite"
    r"|sarcastic|condescending|patroni[sz]ing|long-winded|repetitive|technical|dramatic|preachy"
    r"|enthusiastic|apologetic|cheerful|pedantic)"
)
# What is not one thing at hand: "the blue one", "my draft", "me later".
_ANY: Final = (
    r"(?!(?:the (?!words?\b|phrases?\b|terms?\b|passive\b)|my |our |your |any of |me(?: \W|$)"
    r"|me (?:later|back|now|at|in|on|when|if|about|to|for|why|how|what)\b|anyone|anybody|everyone"
    r"|too\b|over\b|up\b|off\b|out\b|back\b|now\b|until\b|before\b|without\b))"
)
_DONT: Final = rf"(?P<x>(?:{'|'.join(_VERBS)}) {_ANY}<REST>|apologi[sz]e|be {_MANNER})"
_STOP: Final = rf"(?P<x>(?:{'|'.join(_BASES)}) {_ANY}<REST>|apologi[sz]ing|being {_MANNER})"
_STYLE: Final = (
    r"(?:[\w-]+ ){0,2}?(?:emojis?|bullet points|bullets|bulleted lists|lists|tables|mocks|comments"
    r"|headings|headers|jargon|apologies|disclaimers|exclamation marks|semicolons|em[- ]dashes"
    r"|markdown|code blocks|puns|jokes|small talk|filler(?: words)?|abbreviations|acronyms"
    r"|type hints|docstrings|footnotes|links|summaries|caveats|compliments|flattery|metaphors"
    r"|analogies|rhetorical questions|adverbs|cliches|slang|passive voice)"
)
# "Never call me Bob" is a rule, "From now on, call me Ada" is a name.
_NOT_NAME: Final = r"(?!(?:please )?call me (?:<NAME>)(?:$|[,.]| (?:from|in|going|instead)\b))"
_DEED: Final = (
    rf"(?:{_NOT_NAME}(?:always |never |don't |do not |only |just |no |please )*"
    r"(?:(?:<DO>|be|generate|create|import|skip|avoid|stop|talk|greet|sign|number|order|list|limit"
    r"|split|wrap|indent|round)\b|no (?:more )?[\w-]+|(?:all|every|each|your) )<REST>)"
)

ORDERS: Final[tuple[Rule, ...]] = (
    _order(r"(?:you should |you must )?always (?P<x>(?:<DO>)\b<REST>)", "Always {x}."),
    _order(
        r"(?:you should |you must )?(?:never(?: ever)?|don't ever|do not ever) "
        r"(?P<x>(?:<DO>|do)\b<REST>)",
        "Never {x}.",
    ),
    _order(
        r"(?:don't|do not) (?P<x>(?:<DO>)\b<REST>?)(?: any ?more| ever again| again)",
        "Do not {x} any more.",
    ),
    _order(rf"(?:don't|do not) {_DONT}(?<!\bmore)(?<!\bagain)", "Do not {x}.", reply=True),
    _order(
        rf"(?:don't|do not) (?=.* in your (?:answers|replies|responses)\b)"
        rf"{_DONT}",
        "Do not {x}.",
    ),
    _order(rf"(?:stop|no more|quit) {_STOP}(?: any ?more| again)?", "Do not {x}."),
    _order(
        rf"(?:no more|stop (?:with )?(?:the|all the)|enough with the) (?P<x>{_STYLE})",
        "Do not use {x}.",
        "rule:use {x}",
    ),
    _order(rf"no (?P<x>{_STYLE})", "Do not use {x}.", "rule:use {x}", reply=True),
    _order(
        r"(?P<x>(?:use|write|answer|reply|respond|format|prefer|go with)\b [^.;!?\"]{2,80}?) "
        r"(?:instead of|rather than|and not|not) (?P<not>[^.;!?\"]{2,80})",
        "{x} instead of {not}.",
        reply=True,
    ),
    _order(
        r"(?P<x>(?:use|write|answer|reply|respond|format)\b [^.;!?\"]{2,80}?) instead",
        "{x}.",
        reply=True,
    ),
    _order(
        r"(?:from now on|from here on|going forward|in (?:the )?future|next time"
        rf"|from today on),? (?P<x>{_DEED})",
        "From now on: {x}.",
    ),
    _order(
        rf"{_NOT_NAME}(?P<x>(?:<DO>)\b<REST>) (?:from now on|going forward|in (?:the )?future)",
        "From now on: {x}.",
    ),
    _order(
        r"keep (?:your |the |all )?(?P<x>(?:answers|replies|responses|explanations|messages|commits"
        r"|commit messages|functions|summaries|code|examples|comments|emails) <REST>)",
        "Keep {x}.",
        "rule:keep {x}",
    ),
    _order(
        r"(?P<x>(?:(?:when|whenever|each time|every time) (?:I|you|we)|if (?:I|we)"
        r"|if you(?:'re| are)"
        r" (?:not |un)\w+) [^,]{3,100}, (?:please )?(?:always |never |don't )?(?:<DO>)\b<REST>)",
        "{x}.",
    ),
    _order(
        r"I(?:'d| would)? (?:want|like|prefer|need) (?:that )?you (?:to )?(?P<x>always [^.]{3,200}"
        r"|never [^.]{3,200}|not to [^.]{3,200}|stop (?!<OTHER>)[^.]{3,200})",
        "The user wants the agent to {x}.",
    ),
)
"""Rules for wishes that hold from then on: of any message, and of answers to the assistant."""

_LANGUAGE: Final = pattern(
    r"rule:(?:answer|reply|respond|write|speak|talk)(?: [\w']+){0,2}? in (?:<LANGUAGE>)$"
)
_FORBIDS: Final = re.compile(r"(?i)(?:do not|never)\b|.*\bnever\b")

_INSTEAD: Final = re.compile(
    r"(?i)(?:use|write|answer|reply|respond|format|prefer|go with)\b [^.;!?\"]{2,80}? "
    r"(?:instead of|rather than|and not|not) (?P<not>[^.;!?\"]{2,80}?)(?:,? please)?$"
)
"""An order in place of another: `not` is what the other one used."""

_AGAIN: Final = re.compile(
    r"(?i)(?:you (?:can|may) (?P<x>\w+ [^.;!?\"]{2,80}?) (?:again|after all|now)"
    r"|(?P<y>[\w -]{2,40}?) are (?:fine|ok|okay|allowed|welcome) (?:again|after all|now))$"
)
"""Permission for what an order had forbidden."""

_ASKED: Final = re.compile(
    r"(?i)(?:can|could|would|will) you (?:please )?(?P<x>(?:always|never|stop|from now on)\b.+?)"
    r"(?:,? please)?\?+$"
)
_REPLACED: Final = re.compile(
    r"(?i)(?:it's|it is|that's|that is|I meant|I mean|make (?:it|that)|it should be|(?:my|the|our)"
    r" [\w' -]{2,40}? (?:is|are)|)\s*(?P<new>[^,.;!?\"]{2,60}?),? not (?P<old>[^,.;!?\"]{2,60})$"
    r"|not (?P<before>[^,.;!?\"]{2,60}?)(?:,| -| but) (?:but )?(?P<after>[^,.;!?\"]{2,60})$"
)

# Words of a clause, which is no name: "I am not vegan", "My sister lives in Graz, not Vienna".
_CLAUSE: Final = re.compile(
    r"(?i)\b(?:I|we|us|me|my|our|you|your|they|he|she|there|please|thanks|who|what|when|where|why"
    r"|how|if|only|am|is|are|was|were|be|do|does|did|have|has|had|will|would|can|could|shall"
    r"|should|may|might|must|lives?|likes?|loves?|wants?|needs?|prefers?|works?|moved|eats?"
    r"|drinks?|visits?|book|try|see|go|goes|fly|travel|show|find|get|buy|give|take|choose"
    r"|raining)\b"
    r"|\w'(?:m|re|ve|ll|d)\b|n't\b|^let's\b"
)


@dataclass(frozen=True, slots=True)
class _Replacement:
    """A correction of one word or name by another, as in "Graz, not Vienna"."""

    old: str
    new: str


def asked_for(text: str) -> str | None:
    """Return the order in a polite question, such as "Could you always answer in German?"."""
    asked = _ASKED.match(text)
    return asked["x"] if asked else None


def _replacement(text: str) -> _Replacement | None:
    """Return the correction that a sentence makes, or `None`."""
    found = _REPLACED.match(text)
    if not found:
        return None
    old, new = found["old"] or found["before"], found["new"] or found["after"]
    return _Replacement(old.strip(" '"), new.strip(" '"))


def base_form(words: str) -> str:
    """Return an order with the base form of its verb: "using mocks" is "use mocks"."""
    verb, space, rest = words.partition(" ")
    return f"{_BASES.get(verb.lower(), verb)}{space}{rest}"


def displaced(
    text: str, stated: Sequence[MemoryChange], sentence: Sentence, current: _Facts
) -> Iterator[MemoryChange]:
    """Yield the retirement of what a new statement names as wrong: "use tabs, not spaces".

    A language to answer in takes the place of another one.
    """
    if not stated:
        return
    names = {*_instead(text), *_other_languages(stated, current)}
    if correction := _replacement(text):
        old = slot(third_person(correction.old))
        for change in stated:
            head, colon, _ = change.key.rpartition(":")
            names.add((change.type, f"{head}{colon}{old}"))
    names -= {(change.type, change.key) for change in stated}
    for kind, key in sorted(names & current.keys()):
        yield MemoryChange(op="delete", type=kind, key=key, sources=sentence.sources)


def _instead(text: str) -> Iterator[tuple[MemoryType, str]]:
    if order := _INSTEAD.match(text):
        verb = text.split(maxsplit=1)[0].lower()
        yield MemoryType.FEEDBACK, f"rule:{verb} {slot(third_person(order['not']))}"


def _other_languages(
    stated: Sequence[MemoryChange], current: _Facts
) -> Iterator[tuple[MemoryType, str]]:
    if any(_names_language(change.key, change.content) for change in stated):
        yield from (name for name, content in current.items() if _names_language(name[1], content))


def _names_language(key: str, content: str) -> bool:
    return _LANGUAGE.match(key) is not None and _FORBIDS.match(content) is None


def replaced(text: str, sentence: Sentence, current: _Facts) -> Iterator[MemoryChange]:
    """Yield the one known fact with a word or name replaced, as "Graz, not Vienna" says."""
    correction = _replacement(text)
    if correction is None or not stands(correction.new) or _CLAUSE.search(correction.new):
        return
    old = re.compile(rf"(?i)(?<!\w){re.escape(correction.old)}(?!\w)")
    about = [
        (name, content)
        for name, content in current.items()
        if name[0] is not MemoryType.FEEDBACK and old.search(content)
    ]
    if len(about) != 1:
        return
    [((kind, key), content)] = about
    parts = [
        slot(correction.new) if part == slot(correction.old) else part for part in key.split(":")
    ]
    renamed = ":".join(parts)
    if renamed != key:
        yield MemoryChange(op="delete", type=kind, key=key, sources=sentence.sources)
    yield MemoryChange(
        op="add",
        type=kind,
        key=renamed,
        content=old.sub(lambda _: correction.new, content),
        sources=sentence.sources,
    )


def allowed_again(text: str, sentence: Sentence, current: _Facts) -> Iterator[MemoryChange]:
    """Yield the retirement of an order that the user lifts: "You can use emojis again"."""
    allowed = _AGAIN.match(text)
    if not allowed:
        return
    deed = base_form(allowed["x"]) if allowed["x"] else f"use {allowed['y']}"
    name = (MemoryType.FEEDBACK, f"rule:{slot(third_person(deed))}")
    if name in current:
        yield MemoryChange(op="delete", type=name[0], key=name[1], sources=sentence.sources)
