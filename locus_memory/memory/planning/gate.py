"""The relevance gate: which section of memory a message needs, if any."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass, field
from typing import Final, Literal

from locus_memory.memory.planning.decision import ALWAYS, NOTHING, Decision
from locus_memory.memory.planning.gate_tables import (
    ACKNOWLEDGEMENT,
    EXPLETIVES,
    PRONOUNS,
    WORDINGS,
    ends,
    folded,
)
from locus_memory.memory.planning.names import Names

__all__ = ["Asked", "Gate", "Look", "Sight"]

_SHORT: Final = 12
"""A message of more words has room for what its pronouns refer to."""

_LONGEST: Final = 300

_QUOTED: Final = re.compile("[\"\u201c\u201d\u00ab\u00bb`]|\\B'\\w.*\\w'\\B")
# A noun phrase before a thing is what it refers to.
_ANTECEDENT: Final = re.compile(r"\b(?:an?|the|my|your|his|some|any|each|every|two|\d+|these) \w+")
_CAPITALISED: Final = re.compile(r"\b[^\W\d_a-z]\w+")


@dataclass(frozen=True, slots=True)
class Sight:
    """What a search of a scope shows to the gate.

    Attributes:
        names: The names of its episodes and facts.
        evidence: Why the facts say something about the message; `None`: they do not.
    """

    names: Names = field(default_factory=Names)
    evidence: str | None = None


Look = Callable[[], Awaitable[Sight]]
"""Searches a scope for a message."""

Asked = Callable[[], Awaitable[Decision | None]]
"""Asks a model which section a message needs; `None` if it does not say."""


class Gate:
    """Decides which section of memory a message needs; at most one.

    Rules decide, in the order of `docs/memory-tending.md`; the first one that fires wins. Those of
    `decide` read the message alone, take less than a millisecond, and never raise.

    Args:
        mode: `"heuristic"`: the rules; `"llm"`: a model, where no rule fires; `"off"`: every
            message needs pinned facts.
        evidence: Whether facts that a search finds open the gate.
    """

    def __init__(
        self, mode: Literal["off", "heuristic", "llm"] = "heuristic", *, evidence: bool = True
    ) -> None:
        self.mode = mode
        self.evidence = evidence

    def decide(
        self, text: str, *, first_in_thread: bool, entities: Collection[str] | Names = ()
    ) -> Decision:
        """Return the decision of the rules 1 to 6, or `none`.

        Args:
            text: The message.
            first_in_thread: Whether it is the first message of the user in its thread.
            entities: The names that the scope knows, such as the entities of its episodes.
        """
        if self.mode == "off":
            return ALWAYS
        names = entities if isinstance(entities, Names) else Names.of(entities)
        return _worded(text) or _found(text, names, first_in_thread)

    async def choose(
        self, text: str, look: Look, *, first_in_thread: bool, ask: Asked | None = None
    ) -> Decision:
        """Return the decision of all rules, and of a model where the mode says so.

        Args:
            text: The message.
            look: Searches the scope; awaited only where the wording does not decide.
            first_in_thread: As for `decide`.
            ask: Asks the model, in the mode `"llm"`.

        Raises:
            Exception: An error of `look`; an error of the model is not raised by `ask`.
        """
        if self.mode == "off":
            return ALWAYS
        worded = _worded(text)
        if worded is not None:
            return worded
        sight = await look()
        decision = _found(text, sight.names, first_in_thread)
        if decision is NOTHING and self.evidence and sight.evidence is not None:
            decision = Decision("pinned", sight.evidence)
        if decision is NOTHING and self.mode == "llm" and ask is not None:
            return await ask() or decision
        return decision


def _worded(text: str) -> Decision | None:
    """Return the decision of the rules 1 to 4."""
    message = folded(text)
    for rule in WORDINGS:
        if rule.pattern.search(message) and not (rule.unless and rule.unless.search(message)):
            return Decision(rule.section, rule.reason)
    return None


def _found(text: str, names: Names, first_in_thread: bool) -> Decision:  # noqa: FBT001 - a fact of the message
    """Return the decision of the rules 5 and 6, or `none`."""
    return _naming(text, names) or _pointing(text, first_in_thread) or NOTHING


def _naming(text: str, names: Names) -> Decision | None:
    """Return the decision of rule 5."""
    return Decision("pinned", "a known name") if names.are_in(_whole(text)) else None


def _pointing(text: str, first_in_thread: bool) -> Decision | None:  # noqa: FBT001 - a fact of the message
    """Return the decision of rule 6: a pronoun that nothing in the thread explains."""
    if not first_in_thread or len(text) > _LONGEST or len(text.split()) > _SHORT:
        return None
    if _QUOTED.search(text) or ":" in text or _names_somebody(text):
        return None
    message = folded(text)
    if ACKNOWLEDGEMENT.match(message):
        return None
    message = EXPLETIVES.sub("", message)
    for found in PRONOUNS.finditer(message):
        before = message[: found.start()]
        if found["person"] or not _ANTECEDENT.search(before):
            return Decision("episode", "an open pronoun")
    return None


def _names_somebody(text: str) -> bool:
    """Return whether a word but the first one is capitalised."""
    first = text.lstrip()
    skipped = len(text) - len(first) + len(first.split(maxsplit=1)[0]) if first else 0
    return _CAPITALISED.search(text, skipped) is not None


def _whole(text: str) -> str:
    """Return the ends of a text, with half characters replaced, which have no words."""
    text = ends(text)
    return text if text.isascii() else text.encode("utf-8", "replace").decode()
