"""Scopes: the namespaces of the memories of one owner, and the scope of a run."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from inspect import isawaitable
from typing import Any, Final

from locus_memory.conversation.roles import REMEMBER
from locus_memory.errors import InvalidNamespaceError
from locus_memory.memory.models import MemoryType
from locus_memory.store.encoding import encode_namespace
from locus_memory.store.item import Namespace, check_namespace

__all__ = [
    "NamespaceResolver",
    "Scope",
    "agent_of",
    "current_key",
    "metadata_of",
    "namespace_of",
    "split_key",
    "thread_of",
    "user_namespace",
    "user_of",
]

NamespaceResolver = Callable[[Any], Namespace | Awaitable[Namespace | None] | None]
"""Returns the namespace of a run's memories from its state; `None`: the run has no memory."""

_USERS: Final = "users"
_NAMED: Final = ("user_id", "thread_id", "agent_id", REMEMBER)
_TYPES: Final = frozenset(MemoryType)


class _Below:
    """A namespace below that of a scope.

    Args:
        labels: What follows the namespace of the scope.
    """

    def __init__(self, *labels: str) -> None:
        self._labels = labels

    def __get__(self, scope: Scope, owner: type[Scope]) -> Namespace:
        return (*scope.namespace, *self._labels)


@dataclass(frozen=True, slots=True)
class Scope:
    """The namespaces of one owner's memories.

    The current memories are in one namespace, each under its type, a colon and its key. Nothing
    else is in it, so one search finds the current facts and never past ones. The others are beside
    it, and in the scope without a user also `users`.

    Attributes:
        namespace: The prefix of all of them.
    """

    namespace: Namespace

    current = _Below("current")
    """The current memories, which are stored by `current_key`."""
    cursors = _Below("cursors")
    """The records, per thread, of how much of it was extracted."""
    queue = _Below("queue")
    """The messages that wait for extraction, also those of users' scopes."""
    identity = _Below("identity")
    """The one record in which earlier versions kept who the owner is."""
    vitals = _Below("vitals")
    """The vital signs of the current memories, by `current_key`."""
    episodes = _Below("episodes")
    """The digests of sessions, in the order of time."""
    condensed = _Below("condensed")
    """What a model condensed the oldest notes into."""
    transcripts = _Below("transcript")
    """The parent of the namespaces of recorded turns, one per thread."""
    log = _Below("log")
    """The log of model calls and passes."""
    runs = _Below("log", "runs")
    """The records of what runs saw."""
    blocks = _Below("blocks")
    """The stable blocks of threads, by thread."""
    kept_notes = _Below("blocks", "notes")
    """The notes that stand in place of messages."""
    tending = _Below("tending")
    """The one record of the last consolidation."""

    def __post_init__(self) -> None:
        check_namespace(self.namespace)

    def history(self, kind: MemoryType, key: str) -> Namespace:
        """Return the namespace of the past versions of a memory, by sequence number."""
        return (*self.namespace, "history", kind.value, key)

    def transcript(self, thread: str) -> Namespace:
        """Return the namespace of the recorded turns of a thread."""
        return (*self.transcripts, thread)

    def lane(self, thread: str) -> str:
        """Return a string that is unique to a thread of this scope."""
        return encode_namespace((*self.namespace, thread))


def current_key(kind: MemoryType, key: str) -> str:
    """Return the store key of a current memory; no type has a colon in its name."""
    return f"{kind.value}:{key}"


def split_key(name: str) -> tuple[MemoryType, str] | None:
    """Return the type and key of a `current_key`; `None` if it is not one."""
    kind, _, key = name.partition(":")
    return (MemoryType(kind), key) if key and kind in _TYPES else None


def user_namespace(prefix: Namespace, user_id: str) -> Namespace:
    """Return the namespace of a user's memories."""
    return (*prefix, _USERS, user_id)


async def namespace_of(
    state: Any, prefix: Namespace, resolver: NamespaceResolver | None = None
) -> Namespace | None:
    """Return the namespace of the memories of a run; `None`: the run has none.

    Args:
        state: The state of the run; its metadata may have a `user_id`.
        prefix: The namespace of the memories without a user.
        resolver: Decides in place of the `user_id`.

    Raises:
        InvalidNamespaceError: The namespace or the `user_id` is invalid, such as an empty one.
            A run whose user is unknown must not get the memories that all users share.
    """
    if resolver is not None:
        found: Any = resolver(state)
        found = await found if isawaitable(found) else found
        return None if found is None else check_namespace(found)
    user_id = user_of(state)
    return prefix if user_id is None else user_namespace(prefix, user_id)


def user_of(state: Any) -> str | None:
    """Return the user of a run; `None`: the run has none.

    Raises:
        InvalidNamespaceError: The `user_id` of the state's metadata is not a valid name.
    """
    user_id = metadata_of(state).get("user_id")
    if user_id is None:
        return None
    if not isinstance(user_id, str):
        raise InvalidNamespaceError(f"a user_id is a string, not {type(user_id).__name__}")
    return check_namespace((user_id,))[0]


def thread_of(state: Any) -> str:
    """Return the name of the run's thread: its `thread_id` in the metadata, else its run id."""
    thread_id = metadata_of(state).get("thread_id")
    if isinstance(thread_id, str) and thread_id:
        return thread_id
    return str(getattr(state, "run_id", None) or "thread")


def agent_of(state: Any) -> str | None:
    """Return the run's `agent_id` in the metadata, if there is one."""
    agent_id = metadata_of(state).get("agent_id")
    return agent_id if isinstance(agent_id, str) and agent_id else None


def metadata_of(state: Any) -> Mapping[str, Any]:
    """Return what a state says about its run: its metadata.

    What a dict says beside its messages, such as the `user_id` of a graph's state, counts as well.
    """
    if not isinstance(state, Mapping):
        return getattr(state, "metadata", None) or {}
    metadata = state.get("metadata")
    told = metadata if isinstance(metadata, Mapping) else {}
    missing = [name for name in _NAMED if told.get(name) is None]
    return {**told, **{name: state[name] for name in missing if state.get(name) is not None}}
