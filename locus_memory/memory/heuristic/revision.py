"""Applying a correction to the memories that exist: what it replaces, retires or allows again."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from locus_memory.memory.heuristic.clauses import Sentence, slot
from locus_memory.memory.heuristic.corrections import AGAIN, INSTEAD, base_form, replacement
from locus_memory.memory.heuristic.standing import stands
from locus_memory.memory.heuristic.voice import third_person
from locus_memory.memory.models import MemoryChange, MemoryType

__all__ = ["allowed_again", "displaced", "replaced"]

_Facts = Mapping[tuple[MemoryType, str], str]


def displaced(
    text: str, stated: Sequence[MemoryChange], sentence: Sentence, current: _Facts
) -> Iterator[MemoryChange]:
    """Yield the retirement of what a new statement names as wrong: "use tabs, not spaces"."""
    if not stated:
        return
    names = set(_instead(text))
    if correction := replacement(text):
        old = slot(third_person(correction.old))
        for change in stated:
            head, colon, _ = change.key.rpartition(":")
            names.add((change.type, f"{head}{colon}{old}"))
    names -= {(change.type, change.key) for change in stated}
    for kind, key in sorted(names & current.keys()):
        yield MemoryChange(op="delete", type=kind, key=key, sources=sentence.sources)


def _instead(text: str) -> Iterator[tuple[MemoryType, str]]:
    if order := INSTEAD.match(text):
        verb = text.split(maxsplit=1)[0].lower()
        yield MemoryType.FEEDBACK, f"rule:{verb} {slot(third_person(order['not']))}"


def replaced(text: str, sentence: Sentence, current: _Facts) -> Iterator[MemoryChange]:
    """Yield the one known fact with a word or name replaced, as "Graz, not Vienna" says."""
    correction = replacement(text)
    if correction is None or not stands(correction.new):
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
    allowed = AGAIN.match(text)
    if not allowed:
        return
    deed = base_form(allowed["x"]) if allowed["x"] else f"use {allowed['y']}"
    name = (MemoryType.FEEDBACK, f"rule:{slot(third_person(deed))}")
    if name in current:
        yield MemoryChange(op="delete", type=name[0], key=name[1], sources=sentence.sources)
