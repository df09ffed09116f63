"""The operations that a model proposes: how its answer is read, and which ones are refused; pure.

A merge must keep at least half of the content words of each of its facts and may add few, so that
it cannot drop one fact under the name of another, or make one up. Whether a fact is newer is
decided by its moment, never by the model.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from locus_memory._internal.neutral import neutralise
from locus_memory.errors import InvalidArgumentError
from locus_memory.memory.extraction.answer_json import read_documents
from locus_memory.memory.layers.vitals import ENDURING, written_at
from locus_memory.memory.ledger.revision import importance_of
from locus_memory.memory.models import Memory
from locus_memory.memory.moments import read_moment
from locus_memory.memory.tending.rewriting.groups import Call
from locus_memory.memory.tending.words import content_words

__all__ = ["Operation", "Proposal", "read_proposal"]

Op = Literal["merge", "supersede", "retire"]

_LONGEST: Final = 1_000
_MOST_RETIRED: Final = 3
"""An answer that retires more than one of so many facts is refused."""

_MOST_ADDED: Final = 4
"""A merge of which more than one of so many words is in none of its facts is refused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """An operation that is accepted.

    Attributes:
        op: Its name.
        places: The places of its facts in the call: of a merge the one that stays first, of a
            `supersede` the old and the new one.
        content: The new content of a merge.
    """

    op: Op
    places: tuple[int, ...]
    content: str = ""


@dataclass(frozen=True, slots=True)
class Proposal:
    """The operations of an answer.

    Attributes:
        operations: The accepted ones.
        refused: For each other one the reason; nothing of the answer is quoted.
    """

    operations: tuple[Operation, ...] = ()
    refused: tuple[str, ...] = ()


def read_proposal(answer: str, call: Call, prompt: str = "") -> Proposal:
    """Return the operations of an answer that can be accepted.

    Args:
        answer: The model's text.
        call: The facts that the model saw, numbered from 1.
        prompt: The facts as the model saw them; a document in it word for word is a quotation.

    Raises:
        InvalidArgumentError: The answer has no list of operations, or two different ones.
    """
    operations: list[Operation] = []
    refused: list[str] = []
    used: set[int] = set()
    listed = _operations(answer, "".join(prompt.split()))
    # Those that are refused count: the answer wanted them.
    if sum(map(_is_retirement, listed)) * _MOST_RETIRED > len(call.facts):
        return Proposal((), ("the answer retires more than a third of the facts",))
    for stated in listed:
        try:
            operation = _read(stated, call, used)
        except InvalidArgumentError as error:
            refused.append(str(error))
            continue
        used.update(operation.places)
        operations.append(operation)
    return Proposal(tuple(operations), tuple(refused))


def _is_retirement(stated: Any) -> bool:
    return isinstance(stated, Mapping) and _name(stated) == "retire"


def _name(stated: Mapping[str, Any]) -> str:
    return str(stated.get("op")).strip().casefold()


def _operations(answer: str, prompt: str) -> list[Any]:
    found = [
        _listed(document.value)
        for document in read_documents(answer).documents
        if _listed(document.value) is not None and "".join(document.source.split()) not in prompt
    ]
    if not found:
        raise InvalidArgumentError("the answer has no list of operations")
    if any(each != found[-1] for each in found):
        raise InvalidArgumentError("the answer has several lists of operations that differ")
    return found[-1] or []


def _listed(value: Any) -> list[Any] | None:
    if isinstance(value, dict):
        value = value.get("operations", [value] if "op" in value else None)
        return value if isinstance(value, list) else None
    is_one = isinstance(value, list) and all(isinstance(e, dict) and "op" in e for e in value)
    return value if is_one else None


def _read(stated: Any, call: Call, used: Collection[int]) -> Operation:
    """Return one operation; the facts at the places `used` are in an earlier one.

    Raises:
        InvalidArgumentError: It is refused; the message says why.
    """
    if not isinstance(stated, Mapping):
        raise InvalidArgumentError("an operation is not an object")
    read = _READERS.get(_name(stated))
    if read is None:
        raise InvalidArgumentError("an operation is unknown")
    operation = read(stated, call)
    if not set(used).isdisjoint(operation.places):
        raise InvalidArgumentError("a fact is in two operations")
    return operation


def _merge(stated: Mapping[str, Any], call: Call) -> Operation:
    drop = stated.get("drop")
    places = (
        _place(stated.get("keep"), call),
        *(_place(each, call) for each in (drop if isinstance(drop, list) else [drop])),
    )
    if len(set(places)) < max(2, len(places)):
        raise InvalidArgumentError("a merge names a fact twice")
    if len({call.groups[place] for place in places}) > 1:
        raise InvalidArgumentError("a merge is of facts of different groups")
    content = stated.get("content")
    content = neutralise(content) if isinstance(content, str) else ""
    if not 1 <= len(content) <= _LONGEST:
        raise InvalidArgumentError("the content of a merge is empty or too long")
    _check_content(content, [call.facts[place] for place in places])
    return Operation(op="merge", places=places, content=content)


def _check_content(content: str, facts: Sequence[Memory]) -> None:
    """Check that a content says what its facts say.

    Raises:
        InvalidArgumentError: It does not.
    """
    words = content_words(content)
    of_facts = [content_words(each.content) for each in facts]
    if any(2 * len(words & each) < len(each) for each in of_facts):
        raise InvalidArgumentError("a merge loses more than half of the words of a fact")
    added = words - frozenset[str]().union(*of_facts)
    if len(added) * _MOST_ADDED > len(words) or any(map(_has_digit, added)):
        raise InvalidArgumentError("a merge says what none of its facts says")
    newest = max(facts, key=_moment)
    own = content_words(newest.content)
    for fact, each in zip(facts, of_facts, strict=True):
        # An older word in the place of a newer one: the older fact would win.
        is_older = _moment(fact) < _moment(newest)
        if is_older and own - words - each and words & (each - own):
            raise InvalidArgumentError("a merge prefers an older fact to a newer one")


def _supersede(stated: Mapping[str, Any], call: Call) -> Operation:
    places = _place(stated.get("old"), call), _place(stated.get("new"), call)
    old, new = (call.facts[place] for place in places)
    if not call.are_near(*places):
        raise InvalidArgumentError("a fact is superseded by one that is not near it")
    if not _moment(old) < _moment(new):
        raise InvalidArgumentError("a fact is superseded by one that is not newer")
    if importance_of(old) >= ENDURING > importance_of(new):
        raise InvalidArgumentError("an important fact is superseded by a less important one")
    return Operation(op="supersede", places=places)


def _retire(stated: Mapping[str, Any], call: Call) -> Operation:
    place = _place(stated.get("which"), call)
    if importance_of(call.facts[place]) >= ENDURING:
        raise InvalidArgumentError("an important fact is retired")
    return Operation(op="retire", places=(place,))


_READERS: Final[Mapping[str, Callable[[Mapping[str, Any], Call], Operation]]] = {
    "merge": _merge,
    "supersede": _supersede,
    "retire": _retire,
}


def _place(number: Any, call: Call) -> int:
    if isinstance(number, str) and number.strip().isdecimal():
        number = int(number.strip()[:6])
    if isinstance(number, int) and not isinstance(number, bool) and 1 <= number <= len(call.facts):
        return number - 1
    raise InvalidArgumentError("an operation names an unknown fact")


def _moment(memory: Memory) -> float:
    moment = read_moment(written_at(memory))
    return 0.0 if moment is None else moment.timestamp()


def _has_digit(word: str) -> bool:
    return any(map(str.isdigit, word))
