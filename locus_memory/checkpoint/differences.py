"""The differences between two states, in a readable form; pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher
from operator import eq
from typing import Any

import orjson

from locus_memory._internal.notebook import table
from locus_memory.checkpoint.delta import common_prefix

__all__ = [
    "Change",
    "MessageChanges",
    "StateDifference",
    "compare",
    "compare_messages",
    "find_changes",
    "messages_of",
]

_MISSING: Any = object()


@dataclass(frozen=True, slots=True)
class Change:
    """One path that differs.

    Attributes:
        path: The path, such as `metadata.tags[2]`.
        kind: `added`, `removed` or `changed`.
        before: The old value, `None` if there was none.
        after: The new value, `None` if there is none.
    """

    path: str
    kind: str
    before: Any = None
    after: Any = None

    def to_dict(self) -> dict[str, Any]:
        """Return the change as plain JSON."""
        return {
            "path": self.path,
            "kind": self.kind,
            "before": self.before,
            "after": self.after,
        }


def find_changes(old: Any, new: Any, path: str = "") -> Iterator[Change]:
    """Yield the differences between two JSON documents, in the order of the paths."""
    if isinstance(old, dict) and isinstance(new, dict):
        names = [*old, *(name for name in new if name not in old)]
        for name in names:
            child = f"{path}.{name}" if path else name
            yield from _child(old.get(name, _MISSING), new.get(name, _MISSING), child)
    elif isinstance(old, list) and isinstance(new, list):
        for index in range(max(len(old), len(new))):
            before = old[index] if index < len(old) else _MISSING
            after = new[index] if index < len(new) else _MISSING
            yield from _child(before, after, f"{path}[{index}]")
    elif _key(old) != _key(new):
        yield Change(path, "changed", old, new)


def _child(old: Any, new: Any, path: str) -> Iterator[Change]:
    if old is _MISSING:
        yield Change(path, "added", after=new)
    elif new is _MISSING:
        yield Change(path, "removed", before=old)
    else:
        yield from find_changes(old, new, path)


@dataclass(frozen=True, slots=True)
class MessageChanges:
    """The differences between two conversations.

    Attributes:
        common: The number of messages they share.
        edits: Runs of differences, in order: messages of the first, then of the second, each
            with its place, counted from 1.
    """

    common: int
    edits: tuple[tuple[list[tuple[int, Any]], list[tuple[int, Any]]], ...]

    @property
    def removed(self) -> list[tuple[int, Any]]:
        """Every message that only the first has."""
        return [entry for removed, _ in self.edits for entry in removed]

    @property
    def added(self) -> list[tuple[int, Any]]:
        """Every message that only the second has."""
        return [entry for _, added in self.edits for entry in added]


@dataclass(frozen=True, slots=True)
class StateDifference:
    """The differences between two states.

    Attributes:
        messages: The differences between their conversations.
        changes: All other differences, in the order of the paths.
    """

    messages: MessageChanges
    changes: tuple[Change, ...]

    def __bool__(self) -> bool:
        """Whether there is any difference."""
        return bool(self.messages.edits or self.changes)

    def to_dict(self) -> dict[str, Any]:
        """Return the difference as plain JSON."""
        return {
            "messages": {
                "common": self.messages.common,
                "edits": [
                    {"removed": _numbered(removed), "added": _numbered(added)}
                    for removed, added in self.messages.edits
                ],
            },
            "changes": [change.to_dict() for change in self.changes],
        }

    def __repr__(self) -> str:
        return (
            f"<StateDifference: {len(self.messages.removed)} messages removed, "
            f"{len(self.messages.added)} added, {len(self.changes)} other changes>"
        )

    def _repr_html_(self) -> str:
        rows: list[tuple[str, object]] = []
        for removed, added in self.messages.edits:
            rows += [(f"- message {place}", message) for place, message in removed]
            rows += [(f"+ message {place}", message) for place, message in added]
        for change in self.changes:
            if change.kind != "added":
                rows.append((f"- {change.path}", change.before))
            if change.kind != "removed":
                rows.append((f"+ {change.path}", change.after))
        return table(rows or [("no difference", "")])


def compare(old: Any, new: Any) -> StateDifference:
    """Return the differences between two states.

    Args:
        old: A state as `load` returns it: a dict, or an object with `to_checkpoint`.
        new: Likewise.
    """
    (old_messages, old_rest), (new_messages, new_rest) = map(messages_of, map(_plain, (old, new)))
    changes = tuple(find_changes(old_rest, new_rest))
    return StateDifference(compare_messages(old_messages, new_messages), changes)


def _plain(state: Any) -> Any:
    return state if isinstance(state, Mapping) else state.to_checkpoint()


def _numbered(entries: list[tuple[int, Any]]) -> list[dict[str, Any]]:
    return [{"place": place, "message": message} for place, message in entries]


def compare_messages(old: list[Any], new: list[Any]) -> MessageChanges:
    """Return the messages that the two conversations do not share."""
    left, right = [_key(m) for m in old], [_key(m) for m in new]
    start = common_prefix(left, right, eq)
    matcher = SequenceMatcher(None, left[start:], right[start:], autojunk=False)
    common, edits = start, []
    for tag, a, a_end, b, b_end in matcher.get_opcodes():
        if tag == "equal":
            common += a_end - a
        else:
            removed = [(i + 1, old[i]) for i in range(start + a, start + a_end)]
            added = [(i + 1, new[i]) for i in range(start + b, start + b_end)]
            edits.append((removed, added))
    return MessageChanges(common, tuple(edits))


def messages_of(state: Any) -> tuple[list[Any], Any]:
    """Return a state's messages, if it has a list of them, and the rest of the state."""
    if isinstance(state, dict) and isinstance(state.get("messages"), list):
        rest = {name: value for name, value in state.items() if name != "messages"}
        return state["messages"], rest
    return [], state


def _key(value: Any) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
