"""The faults for which a provider refuses a conversation, and their repair."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Literal, NamedTuple, TypeVar

from locus_memory._internal.quoting import quote
from locus_memory.conversation.factory import changed, new_message
from locus_memory.conversation.roles import role_of

__all__ = ["CUT_OFF", "Fault", "FaultKind", "mend", "repair", "validate"]

FaultKind = Literal[
    "orphan_result",
    "misplaced_result",
    "duplicate_result",
    "missing_result",
    "missing_call_id",
    "duplicate_call_id",
]

CUT_OFF = "The call was cut off: no result was recorded."
"""The text of a result that replaces a missing one."""

_MEANINGS: dict[FaultKind, str] = {
    "orphan_result": "a result without a call",
    "misplaced_result": "a result that does not directly follow its call",
    "duplicate_result": "a second result of one call",
    "missing_result": "a call without a result",
    "missing_call_id": "a call without an id",
    "duplicate_call_id": "a call whose id is used before",
}

_Message = TypeVar("_Message")


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault in a conversation for which a provider refuses it.

    Attributes:
        kind: The kind of fault.
        index: The index of the message that holds the result or the call.
        tool_call_id: The id of the call, if it has one.
    """

    kind: FaultKind
    index: int
    tool_call_id: str | None

    def __str__(self) -> str:
        """Return the fault as a sentence."""
        name = "" if self.tool_call_id is None else f" ({quote(self.tool_call_id)})"
        return f"message {self.index}: {_MEANINGS[self.kind]}{name}"


class _Call(NamedTuple):
    """A tool call: the index of its message, its place there and its id."""

    message: int
    position: int
    id: str | None


class _Exchange:
    """The matching of results to calls, in a conversation that may have faults.

    Attributes:
        messages: The conversation.
        calls: Its calls, in order.
        results: The places of its tool messages. Each maps to the place of the message before the
            unbroken run of tool messages that it is part of (-1: there is none).
        answers: By the place of a tool message, the index in `calls` of the call that it answers.
    """

    def __init__(self, messages: Sequence[Any]) -> None:
        self.messages = messages
        self.calls: list[_Call] = []
        self.results: dict[int, int] = {}
        head = -1
        for index, message in enumerate(messages):
            role = role_of(message)
            if role == "tool":
                self.results[index] = head
                continue
            head = index
            if role == "assistant" and message.tool_calls:
                calls = enumerate(message.tool_calls)
                self.calls += [_Call(index, position, call.id) for position, call in calls]
        self.answers = self._match()

    def _match(self) -> dict[int, int]:
        waiting: dict[tuple[int, str | None], list[int]] = defaultdict(list)
        for number, call in enumerate(self.calls):
            waiting[call.message, call.id].append(number)
        answers: dict[int, int] = {}
        for index, head in self.results.items():
            numbers = waiting.get((head, self.messages[index].tool_call_id))
            if numbers and self.messages[index].tool_call_id:
                answers[index] = numbers.pop(0)
        if len(answers) < len(self.results):
            self._match_displaced(answers)
        return answers

    def _match_displaced(self, answers: dict[int, int]) -> None:
        """Assign each remaining result to the nearest open call before it, else after it."""
        taken = set(answers.values())
        waiting: dict[str | None, list[int]] = defaultdict(list)
        for number, call in enumerate(self.calls):
            if number not in taken:
                waiting[call.id].append(number)
        for index in self.results:
            call_id = self.messages[index].tool_call_id
            numbers = waiting.get(call_id)
            if index not in answers and call_id and numbers:
                before = [number for number in numbers if self.calls[number].message < index]
                answers[index] = before[-1] if before else numbers[0]
                numbers.remove(answers[index])

    def faults(self) -> list[Fault]:
        """Return all faults, by place."""
        found = chain(self._call_faults(), self._result_faults())
        return sorted(found, key=lambda fault: fault.index)

    def _call_faults(self) -> Iterable[Fault]:
        answered = set(self.answers.values())
        seen: set[str | None] = set()
        for number, call in enumerate(self.calls):
            if not call.id:
                yield Fault("missing_call_id", call.message, None)
            elif call.id in seen:
                yield Fault("duplicate_call_id", call.message, call.id)
            seen.add(call.id)
            if number not in answered:
                yield Fault("missing_result", call.message, call.id or None)

    def _result_faults(self) -> Iterable[Fault]:
        ids = {call.id for call in self.calls if call.id}
        for index, head in self.results.items():
            call_id = self.messages[index].tool_call_id
            number = self.answers.get(index)
            if number is None:
                kind: FaultKind = "duplicate_result" if call_id in ids else "orphan_result"
                yield Fault(kind, index, call_id or None)
            elif self.calls[number].message != head:
                yield Fault("misplaced_result", index, call_id)

    def mended(self) -> list[Any]:
        """Return the conversation with each call followed by its one result."""
        batches: dict[int, list[tuple[_Call, str, int | None]]] = defaultdict(list)
        places = {number: index for index, number in self.answers.items()}
        for number, (call, name) in enumerate(zip(self.calls, self._names(), strict=True)):
            batches[call.message].append((call, name, places.get(number)))
        mended: list[Any] = []
        for index, message in enumerate(self.messages):
            if index in batches:
                mended += self._batch(message, batches[index])
            elif index not in self.results:
                mended.append(message)
        return mended

    def _names(self) -> list[str]:
        """Return an id for each call: its own, or a new one if that is taken.

        Only earlier messages decide, so that a growing conversation is always repaired the same
        way.
        """
        names: list[str] = []
        used: set[str] = set()
        tried: dict[str, int] = {}
        for call in self.calls:
            name, base = call.id or "", call.id or "call"
            while not name or name in used:
                tried[base] = tried.get(base, 1) + 1
                name = f"{base}_{tried[base]}"
            used.add(name)
            names.append(name)
        return names

    def _batch(self, message: Any, batch: list[tuple[_Call, str, int | None]]) -> list[Any]:
        renamed = {call.position: name for call, name, _ in batch if name != call.id}
        results = [(place, name) for _, name, place in batch if place is not None]
        # Results that are already in place keep their order.
        results.sort(key=lambda result: (self.results[result[0]] != batch[0][0].message, result[0]))
        return [
            _with_call_ids(message, renamed) if renamed else message,
            *[
                each if each.tool_call_id == name else changed(each, tool_call_id=name)
                for each, name in ((self.messages[place], name) for place, name in results)
            ],
            *[
                new_message(
                    message,
                    role="tool",
                    content=CUT_OFF,
                    tool_call_id=name,
                    name=message.tool_calls[call.position].name,
                )
                for call, name, place in batch
                if place is None
            ],
        ]


def _with_call_ids(message: Any, names: dict[int, str]) -> Any:
    calls = [
        changed(call, id=names[position]) if position in names else call
        for position, call in enumerate(message.tool_calls)
    ]
    is_tuple = isinstance(message.tool_calls, tuple)
    return changed(message, tool_calls=tuple(calls) if is_tuple else calls)


def validate(messages: Iterable[Any]) -> list[Fault]:
    """Return every fault in the tool structure of a conversation, by place.

    A provider refuses a conversation unless each tool call has its own id and exactly one result,
    in the tool messages that directly follow the message with the call.

    Args:
        messages: Messages of any class with `role`, `tool_calls` and `tool_call_id`.
    """
    return _Exchange(list(messages)).faults()


def repair(messages: Iterable[_Message]) -> list[_Message]:
    """Return the conversation without faults: `validate(repair(messages))` is empty.

    Displaced results move to their call; orphans and second results are dropped; a missing result
    becomes a tool message that says so; a call whose id was used before gets a new id, together
    with its result. All other messages keep their place and are the same objects.
    """
    return mend(messages)[0]


def mend(messages: Iterable[_Message]) -> tuple[list[_Message], list[Fault]]:
    """Return the conversation as `repair` does, and the faults it had."""
    given = list(messages)
    exchange = _Exchange(given)
    faults = exchange.faults()
    return (exchange.mended(), faults) if faults else (given, faults)
