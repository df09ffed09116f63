"""An extractor without a model: a table of English phrases, for demos and tests."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import takewhile
from typing import Any, Final

from locus_memory.memory.heuristic.agenda import NOTE
from locus_memory.memory.heuristic.clauses import (
    Sentence,
    clauses,
    repaired,
    slot,
    without_lead,
)
from locus_memory.memory.heuristic.corrections import (
    ORDERS,
    allowed_again,
    asked_for,
    base_form,
    displaced,
    replaced,
)
from locus_memory.memory.heuristic.grammar import Retraction, Rule
from locus_memory.memory.heuristic.heard import heard, is_joke, is_secret
from locus_memory.memory.heuristic.person import RETRACTIONS, RULES
from locus_memory.memory.heuristic.standing import trimmed
from locus_memory.memory.heuristic.voice import about_user, third_person
from locus_memory.memory.models import Memory, MemoryChange, MemoryType

__all__ = ["HeuristicExtractor"]

_Name = tuple[MemoryType, str]
_Facts = dict[_Name, str]

_LONGEST_CONTENT = 300
_NOTE_IMPORTANCE = 0.8
# How many sentences, or messages, are read before the event loop runs other tasks.
_SLICE = 4
_FORGET: Final = re.compile(
    r"(?:please,? )?forget (?!it\b)(?:that |about |(?P<all>(?:what I (?:said|told you)|everything"
    r"|all)(?: I (?:said|told you))? about ))?(?P<x>.{3,200})$",
    re.IGNORECASE,
)
# What "forget my ..." names.
_NAMED_SLOTS: Final = frozenset(
    {"name", "home", "job", "employer", "birthday", "age", "diet", "goal"}
)
_SPLIT: Final = re.compile(r",? and |,? or |, ?")
_BEFORE_A_THING: Final = re.compile(
    r"(?i)(?:(?:and|or|to|also|especially|particularly|mainly|mostly|even|sadly|unfortunately) )+"
)
# What stands between commas in a list and is no thing of it.
_ASIDE: Final = re.compile(
    r"(?i)(?:which|who|that|as|whatever|whoever|however|no matter"
    r"|by the way|btw|of course|in fact|for (?:example|instance|sure)"
    r"|I (?:am|have)"
    r"|(?:honestly|unfortunately|sadly|luckily|thankfully|fortunately|obviously|apparently"
    r"|actually|really|among (?:others|other things)|etc\.?|and so on|so on)$)(?:\b|$)"
)
# What stands in a list and says that it and the rest are no things of it: "nuts, not almonds".
_EXCEPTION: Final = re.compile(
    r"(?i)(?:except(?: for)?|excepting|apart from|aside from|other than|not|only|just|but|unless)"
    r"\b|.*\b(?:is|are|isn't|aren't) "
)
_PLEASE: Final = re.compile(r"(?i),? please$")
# The groups of a pattern that are checked one by one, or are no part of a fact.
_NO_FACT: Final = frozenset({"x", "to", "near"})
_NO: Final = re.compile(r"(?i)(?:no|nope|wrong|not like that|actually)\b")


class HeuristicExtractor:
    """An extractor of facts that users state explicitly, in English, without model and network.

    It is good for demos, tests and a first try, and no more than that:

    - It reads English, one sentence at a time, and only the user's own messages. It misses facts
      that are only implied, irony, and answers to a question ("Yes, since 2019"): expect it to
      keep a small part of what a model keeps.
    - It takes sentences literally. Questions, quotations, code, pasted texts, roles, jokes,
      suppositions and doubts are left out, if their words show what they are. So are facts that
      are not understood by themselves, such as "I like that one" or "The deadline is tomorrow".
    - It sees corrections: "No, don't use mocks", "Stop using bullet points", "Use tabs instead of
      spaces", "It's Graz, not Vienna", "From now on, call me Ada". It sees confirmations: after
      "Yes, exactly", a fact or rule that the assistant stated just before is the user's. And it
      sees repairs: of "I live in Graz, no wait, in Linz", Linz counts.
    - A fact has one slot, such as `home` or `likes:tea`, and a later one in the same slot
      replaces it. Slots are compared by their words, so "tea" and "a cup of tea" are two.
    - A sentence in which `find_secret` finds a password, key or card number is left out. So is
      one with a word for such a secret, or for logging in with it, in it or beside it.
    - Of a message, the first 4,000 characters are read.

    Attributes:
        name: `"heuristic"`.
    """

    name: str = "heuristic"

    async def extract(
        self, messages: Sequence[Any], memories: Sequence[Memory]
    ) -> tuple[MemoryChange, ...]:
        """Return the changes found; messages of any class with `role` and `content` work."""
        known = {(memory.type, memory.key): memory.content for memory in memories}
        current = dict(known)
        found: dict[_Name, MemoryChange] = {}
        said: list[Sentence] = []
        for place, told in enumerate(heard(messages)):
            if place % _SLICE == 0:
                await asyncio.sleep(0)
            said.extend(told)
        for place, sentence in enumerate(said):
            if place % _SLICE == 0:
                await asyncio.sleep(0)
            meant = None if is_joke(said, place) else repaired(sentence.text)
            if meant is None:
                continue
            changes = list(_changes(replace(sentence, text=meant), current))
            if changes and not is_secret(said, place):
                for change in changes:
                    found[change.type, change.key] = change
                    current[change.type, change.key] = change.content
        return tuple(_news(found, known))


def _news(found: dict[_Name, MemoryChange], known: _Facts) -> Iterator[MemoryChange]:
    """Yield the changes that change anything, with the operation relative to the known facts."""
    for name, change in found.items():
        if name not in known:
            if change.op != "delete":
                yield change
        elif change.op == "delete":
            yield change
        elif change.content.casefold() != known[name].casefold():
            yield replace(change, op="update")


def _changes(sentence: Sentence, current: _Facts) -> Iterator[MemoryChange]:
    text = without_lead(sentence.text)
    note = NOTE.pattern.match(text)
    order = asked_for(sentence.text)
    if note and (note["request"] or not sentence.asks):
        yield from _noted(note, sentence, current)
    elif order:
        stated = list(_ordered(order, sentence))
        yield from displaced(order, stated, sentence, current)
        yield from stated
    elif sentence.asks:
        return
    elif forget := _FORGET.match(text):
        yield from _forgotten(forget, sentence, current)
    else:
        yield from _told(text, sentence, current)


def _told(text: str, sentence: Sentence, current: _Facts) -> Iterator[MemoryChange]:
    """Yield what a sentence states, and what it corrects or allows again."""
    stated = list(_stated(text, sentence, current))
    yield from displaced(text, stated, sentence, current)
    # "I no longer live in Rome, I live in Graz": what replaces a fact comes last.
    yield from sorted(stated, key=lambda change: change.op != "delete")
    if not stated and not sentence.unsure:
        yield from replaced(text, sentence, current)
        yield from allowed_again(text, sentence, current)


def _stated(text: str, sentence: Sentence, current: _Facts) -> Iterator[MemoryChange]:
    yield from _ordered(text, sentence)
    parts = clauses(text)
    unsure = sentence.unsure
    for rule in [] if unsure else RULES:
        if rule.opening and not sentence.first:
            continue
        for part in [text] if rule.whole else parts:
            if found := rule.pattern.match(part):
                yield from _filled(rule, found, sentence)
    if not unsure:
        yield from _ended(parts, sentence, current)


def _ended(parts: Sequence[str], sentence: Sentence, current: _Facts) -> Iterator[MemoryChange]:
    """Yield the retirement of the facts that clauses say are over."""
    for part in parts:
        for retraction in RETRACTIONS:
            if found := retraction.pattern.match(part):
                yield from _retracted(retraction, found, sentence, current)


def _ordered(text: str, sentence: Sentence) -> Iterator[MemoryChange]:
    """Yield the wish for the agent in a sentence, if there is one."""
    if not sentence.is_own:
        return
    corrects = sentence.reply or _NO.match(sentence.text) is not None
    for rule in ORDERS:
        if (rule.reply and not corrects) or not (found := rule.pattern.match(text)):
            continue
        if changes := list(_filled(rule, found, sentence)):
            yield changes[0]
            return


def _noted(note: re.Match[str], sentence: Sentence, current: _Facts) -> Iterator[MemoryChange]:
    """Yield the facts of a note: by the rules that match it, else its text as it is."""
    text = note["x"].rstrip(" .!?")
    facts = list(_stated(text, replace(sentence, text=text), current))
    for fact in facts:
        yield replace(fact, importance=max(fact.importance or 0, _NOTE_IMPORTANCE))
    # A single word means nothing without its context, and it may be a password.
    if not facts and " " in text:
        yield from _filled(NOTE, note, sentence)


def _forgotten(
    forget: re.Match[str], sentence: Sentence, current: _Facts
) -> Iterator[MemoryChange]:
    text = forget["x"].rstrip(" .!")
    changes = list(_stated(text, replace(sentence, text=text), current))
    names = {(change.type, change.key) for change in changes}
    names.add((NOTE.type, NOTE.key.format(x=slot(third_person(text)))))
    if slot(text) in _NAMED_SLOTS:
        names.add((MemoryType.USER, slot(text)))
    if forget["all"]:
        names |= {name for name in current if name[1].partition(":")[2] == slot(text)}
    for kind, key in sorted(names & current.keys()):
        yield MemoryChange(op="delete", type=kind, key=key, sources=sentence.sources)


def _retracted(
    retraction: Retraction, found: re.Match[str], sentence: Sentence, current: _Facts
) -> Iterator[MemoryChange]:
    thing = next((value for value in found.groups() if value), "")
    for template in retraction.keys:
        key = template.format(x=slot(third_person(thing)))
        content = current.get((MemoryType.USER, key))
        if content is not None and (not retraction.named or _names(content, thing)):
            yield MemoryChange(op="delete", type=MemoryType.USER, key=key, sources=sentence.sources)


def _names(content: str, thing: str) -> bool:
    """Return whether a fact has the words of a thing."""
    return re.search(rf"(?i)(?<!\w){re.escape(thing)}(?!\w)", content) is not None


def _filled(rule: Rule, found: re.Match[str], sentence: Sentence) -> Iterator[MemoryChange]:
    """Yield the memories of a match: its words inserted into the rule's templates."""
    words = {name: _words(rule, value or "") for name, value in found.groupdict().items()}
    things = _listed(words["x"]) if rule.each else [words.get("x", "")]
    others = [value for name, value in words.items() if name not in _NO_FACT and value]
    if not all(map(rule.check, others)):
        return
    for thing in things:
        change = _memory(rule, {**words, "x": thing}, sentence)
        if rule.check(thing) and len(change.content) <= _LONGEST_CONTENT:
            yield change


def _listed(value: str) -> list[str]:
    """Return the things of a list, without asides: "nuts, which is bad, and especially milk".

    It ends before an exception: "nuts, except almonds".
    """
    things = [_BEFORE_A_THING.sub("", thing.strip()) for thing in _SPLIT.split(value)]
    told = [thing for thing in things if thing and not _ASIDE.match(thing)]
    return list(takewhile(lambda thing: not _EXCEPTION.match(thing), told))


def _words(rule: Rule, value: str) -> str:
    """Return the words of a group: an order with its base form, a fact without its loose end."""
    if rule.type is MemoryType.FEEDBACK:
        return base_form(_PLEASE.sub("", value).strip(" ,"))
    return value.strip() if rule is NOTE else trimmed(value)


def _memory(rule: Rule, words: dict[str, str], sentence: Sentence) -> MemoryChange:
    person = about_user if rule.type is not MemoryType.USER else third_person
    key = rule.key.format_map({name: slot(third_person(each)) for name, each in words.items()})
    told = {name: person(value) for name, value in words.items()}
    content = rule.content.format_map({**told, "an": _article(words.get("x", ""))})
    content = " ".join(content.split()).rstrip(" .!") + "."
    return MemoryChange(
        op="add",
        type=rule.type,
        key=" ".join(key.split()),
        content=content[0].upper() + content[1:],
        importance=rule.importance,
        sources=sentence.sources,
    )


def _article(thing: str) -> str:
    return "an" if thing[:1].lower() in "aeiou" else "a"
