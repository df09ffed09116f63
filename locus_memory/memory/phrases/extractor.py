"""An extractor without a model: what a table of short English sentences states."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from locus_memory._internal.lazy import compiled_later
from locus_memory._internal.offload import aside
from locus_memory.conversation.roles import is_memory_block, role_of
from locus_memory.memory.models import Memory, MemoryChange, MemoryType, has_authority
from locus_memory.memory.phrases.table import LANGUAGE_RULE, Told, is_thing, slot, stated
from locus_memory.memory.phrases.wording import (
    FORGET,
    affirmed,
    clauses,
    is_staged,
    last_statement,
    plain,
    sentences,
    text_of,
    to_remember,
)
from locus_memory.memory.secrets.detection import find_secret, mentions_secret

__all__ = ["HeuristicExtractor"]

_Name = tuple[MemoryType, str]
_Facts = Mapping[_Name, str]

_NOTE_IMPORTANCE: Final = 0.8
_LAST_WORDS: Final = 2_000

_YES: Final = compiled_later(
    re.compile,
    r"(?i)(?:yes|yeah|yep|yup|correct|exactly|right|true|indeed|that is (?:right|correct|true)"
    r"|you are right)(?:[,.! ]+(?:exactly|correct|right|indeed|that is (?:right|correct|true)|I do"
    r"|I am|it is|please|please do)){0,2}",
)
_NO: Final = compiled_later(
    re.compile,
    r"(?i)(?:no|nope|wrong|that is (?:wrong|not (?:right|true|correct)))(?:[,.! ]+"
    r"(?:I (?:do|am) not|it is not|that is (?:wrong|not (?:right|true|correct))"
    r"|not (?:at all|any ?more))){0,2}",
)
_CORRECTED: Final = compiled_later(
    re.compile,
    r"(?i)(?:(?:no|sorry|actually|it is|that is|I meant|make it),? ){0,2}(?P<told>.{1,80}?), not"
    r" (?:in |at )?(?P<old>[^,]{2,60})",
)
_INSTEAD: Final = compiled_later(
    re.compile,
    r"(?i)(?P<head>(?:my|I|we) .{1,40}?(?:is|am|are)) not (?P<old>[^,]{2,60}), (?:it is|but)"
    r" (?P<new>[^,]{2,60})",
)
_VALUE: Final = compiled_later(re.compile, r"[\w'./-]+(?: [\w'./-]+){0,3}")


class HeuristicExtractor:
    """An extractor of facts that users state in one of a few dozen ways, without a model.

    It is for demos, tests and a first try. What it leaves alone, the words of the transcript have:

    - It reads whole sentences in English, in the first person and the present: "I live in Vienna",
      "I'm allergic to nuts", "Always answer in English". The message has at most two of them, and
      nothing else but a greeting: no question, quotation, colon or second line.
    - Nothing is taken from messages among which a role is given, a pretence begins, or a text is
      handed in to work on.
    - "Yes." after "You live in Vienna, right?" confirms that, and "No." denies it. "I don't live in
      Rome" retires such a fact, and "It's May 4, not May 3" corrects the fact with the old value.
    - A message that asks to remember something is kept as it is, in twelve languages. "Forget
      that ...", "Forget what I said about ..." and "Forget everything about me" retire facts.
    - A message beside which a password, key or card number stands or is asked for gives nothing.

    Attributes:
        name: `"heuristic"`.
    """

    name: str = "heuristic"

    async def extract(
        self, messages: Sequence[Any], memories: Sequence[Memory]
    ) -> tuple[MemoryChange, ...]:
        """Return the changes found; messages of any class with `role` and `content` work."""
        facts = {(memory.type, memory.key): memory for memory in memories}
        known = {name: memory.content for name, memory in facts.items()}
        if await aside(sum(len(text_of(each)) for each in messages), is_staged, messages):
            return ()
        current, found = dict(known), dict[_Name, MemoryChange]()
        for place, message in enumerate(messages):
            # The event loop runs other tasks meanwhile.
            await asyncio.sleep(0)
            if role_of(message) != "user" or is_memory_block(message):
                continue
            changes = _said(messages, place, current)
            if changes and not _is_secret(messages, place):
                found |= {(each.type, each.key): each for each in changes}
                current |= {(each.type, each.key): each.content for each in changes}
        return tuple(
            _again(each, facts[name]) if each.op == "add" and name in known else each
            for name, each in found.items()
            if each.op == "add" or name in known
        )

    def may_state(self, messages: Sequence[Any]) -> bool:
        """Return whether messages may change memories, whichever are known.

        It is asked before the known memories are read. Of what is `is_staged`, it knows nothing.
        """
        unknown = _Unknown()
        try:
            return any(
                role_of(message) == "user"
                and not is_memory_block(message)
                and _said(messages, place, unknown)
                for place, message in enumerate(messages)
            )
        except _AskedError:
            return True

    def only_asks(self, messages: Sequence[Any]) -> bool:
        """Return whether all that users say is requests to remember, or to forget."""
        said = [text_of(each).strip() for each in messages if role_of(each) == "user"]
        return bool(said) and all(
            to_remember(each) or FORGET.fullmatch(each.rstrip(" .!")) for each in said
        )


class _AskedError(Exception):
    """What is said depends on the known facts."""


class _Unknown(_Facts):
    """Facts that are not read yet."""

    def __getitem__(self, name: _Name) -> str:
        raise _AskedError

    def __iter__(self) -> Iterator[_Name]:
        raise _AskedError

    def __len__(self) -> int:
        raise _AskedError


def _again(change: MemoryChange, known: Memory) -> MemoryChange:
    """Return the change of a known fact; one that is only said again is as important as before."""
    said_again = change.content == known.content and has_authority(known)
    return replace(change, op="update", importance=None if said_again else change.importance)


def _said(messages: Sequence[Any], place: int, current: _Facts) -> list[MemoryChange]:
    """Return the changes that a message of the user makes."""
    text, before = text_of(messages[place]).strip(), _answer_before(messages, place)
    if forget := FORGET.fullmatch(text.rstrip(" .!")):
        return [_retired(name, place) for name in _forgotten(forget, current)]
    if note := to_remember(text):
        return [replace(each, sources=(place,)) for each in _noted(note)]
    answer, sources = plain(text), (place - 1, place)
    if before is not None and _YES.fullmatch(answer):
        return _stated(stated(last_statement(before)), current, *sources)
    if before is not None and _NO.fullmatch(answer):
        denied = _denied(stated(last_statement(before)), current)
        return [_retired(name, *sources) for name in denied]
    # Who says the assistant's words again practises a language, or reads aloud.
    is_echo = answer.casefold() in (before or "").casefold()
    return [] if is_echo else _told(sentences(text), place, current)


def _told(said: Sequence[str], place: int, current: _Facts) -> list[MemoryChange]:
    """Return what all sentences of a message say; nothing, unless each is understood."""
    changes: list[MemoryChange] = []
    for sentence in said:
        read = [_read(clause, place, current) for clause in clauses(sentence)]
        if None in read:
            # "Sorry, I live in Graz, not in Rome."
            read = [_corrected(sentence, place, current)]
        for each in read:
            if each is None:
                return []
            changes += each
    # "I no longer live in Rome, I live in Graz": what replaces a fact comes last.
    return sorted(changes, key=lambda change: change.op != "delete")


def _read(clause: str, place: int, current: _Facts) -> list[MemoryChange] | None:
    """Return what a clause states, denies or corrects; `None`: the table does not have it."""
    if told := stated(clause):
        return _stated(told, current, place)
    if denied := stated(affirmed(clause) or ""):
        return [_retired(each, place) for each in _denied(denied, current)]
    return _corrected(clause, place, current)


def _stated(told: Sequence[Told], current: _Facts, *sources: int) -> list[MemoryChange]:
    """Return the changes of statements; a language to answer in takes the place of another."""
    languages = {change.key for change, _ in told if LANGUAGE_RULE.fullmatch(change.key)}
    others = [
        name
        for name, content in (current.items() if languages else ())
        if content.startswith(("Always", "From now on"))
        and LANGUAGE_RULE.fullmatch(name[1])
        and not languages <= {name[1]}
    ]
    return [_retired(name, *sources) for name in others] + [
        replace(each.change, sources=sources) for each in told
    ]


def _denied(told: Sequence[Told], current: _Facts) -> list[_Name]:
    """Return the names of the facts that have the denied values."""
    names = [((change.type, change.key), value) for change, value in told]
    return [name for name, value in names if _literal(value).search(current.get(name, ""))]


def _corrected(clause: str, place: int, current: _Facts) -> list[MemoryChange] | None:
    """Return what "X, not Y" changes; `None`, unless one fact has the words of the old value."""
    if found := _INSTEAD.fullmatch(clause):
        told = f"{found['head']} {found['new']}"
        return [replace(each.change, sources=(place,)) for each in stated(told)]
    found = _CORRECTED.fullmatch(clause)
    if found is None:
        return None
    about = [
        name
        for name, content in current.items()
        if name[0] is not MemoryType.FEEDBACK and _literal(found["old"]).search(content)
    ]
    if len(about) != 1:
        return None
    told, old, name = found["told"], found["old"], about[0]
    facts = [each.change for part in clauses(told) for each in stated(part)]
    if not facts and _VALUE.fullmatch(told) and not told[0].islower() and is_thing(told):
        content = _literal(old).sub(lambda _: told, current[name])
        parts = [slot(told) if part == slot(old) else part for part in name[1].split(":")]
        key = ":".join(parts)
        facts = [MemoryChange(op="add", type=name[0], key=key, content=content, importance=0.5)]
    # One that keeps its key is written after it is retired.
    written = [replace(each, sources=(place,)) for each in facts]
    return [_retired(name, place), *written] if facts else None


def _noted(note: str) -> list[MemoryChange]:
    """Return the facts of a note: what the table has of it, or its text as it is."""
    said = sentences(note)
    facts = [stated(clause) for sentence in said for clause in clauses(sentence)]
    if said and all(facts):
        told = [each.change for fact in facts for each in fact]
        least = _NOTE_IMPORTANCE
        return [replace(each, importance=max(each.importance or 0.0, least)) for each in told]
    text = note.rstrip(" .!\u3002\uff01")
    return [
        MemoryChange(
            op="add",
            type=MemoryType.USER,
            key=f"note:{slot(text)}",
            content=f"The user asks to remember: {text}.",
            importance=_NOTE_IMPORTANCE,
        )
    ]


def _forgotten(forget: re.Match[str], current: _Facts) -> list[_Name]:
    """Return the names of the facts that a request to forget is about."""
    if forget["all"]:
        return list(current)
    if forget["slot"]:
        return [name for name in current if name[1] == slot(forget["slot"])]
    words = (forget["about"] or forget["that"]).rstrip(" .!")
    names = {name for name in current if _literal(words).search(current[name])}
    said = [clause for sentence in sentences(words) for clause in clauses(sentence)]
    names.update(name for clause in said for name in _denied(stated(clause), current))
    return [name for name in current if name in names or name[1] == f"note:{slot(words)}"]


def _literal(words: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w){re.escape(words.strip())}(?!\w)", re.IGNORECASE)


def _retired(name: _Name, *sources: int) -> MemoryChange:
    return MemoryChange(op="delete", type=name[0], key=name[1], sources=sources)


def _answer_before(messages: Sequence[Any], place: int) -> str | None:
    """Return the text of the assistant's message just before a position, if there is one."""
    before = messages[place - 1] if place else None
    if before is None or role_of(before) != "assistant" or is_memory_block(before):
        return None
    content = before.content
    return content[-_LAST_WORDS:] if isinstance(content, str) else None


def _is_secret(messages: Sequence[Any], place: int) -> bool:
    """Return whether a message or one beside it has a secret, or a word for one.

    A password may look like any word, and only the next message may name it.
    """
    users = (n for n in range(place - 1, -1, -1) if role_of(messages[n]) == "user")
    before = next(users, 0)
    users = (n for n in range(place + 1, len(messages)) if role_of(messages[n]) == "user")
    after = next(users, len(messages))
    near = [text_of(each) for each in messages[before : after + 1]]
    return any(mentions_secret(each) or find_secret(each) for each in [*near, "\n".join(near)])
