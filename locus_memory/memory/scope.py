"""Whose memories: the namespaces of one scope, and which scope a run has."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from inspect import isawaitable
from typing import Any, Final

from locus_memory.errors import InvalidNamespaceError
from locus_memory.memory.models import MemoryType
from locus_memory.store.encoding import encode_namespace
from locus_memory.store.item import Namespace, check_namespace

__all__ = [
    "NamespaceResolver",
    "Scope",
    "current_key",
    "namespace_of",
    "split_key",
    "thread_of",
    "user_namespace",
]

NamespaceResolver = Callable[[Any], Namespace | Awaitable[Namespace | None] | None]
"""Returns the namespace of a run's memories from its state; `None`: no memory for this run."""

_USERS: Final = "users"
_TYPES: Final = frozenset(MemoryType)


@dataclass(frozen=True, slots=True)
class Scope:
    """The namespaces of one owner's memories.

    The current memories are in one namespace, `(*namespace, "current")`, each under its type,
    a colon and its key; nothing else is there, so that one search finds what is true now, and
    never meets what was. Beside it are `history`, `cursors` and `queue`, and in the scope
    without a user `users`.

    Attributes:
        namespace: What all of them start with.
    """

    namespace: Namespace

    def __post_init__(self) -> None:
        check_namespace(self.namespace)

    @property
    def current(self) -> Namespace:
        """Where the current memories are, by `current_key`."""
        return (*self.namespace, "current")

    def history(self, kind: MemoryType, key: str) -> Namespace:
        """Return where the past versions of a memory are, by sequence number."""
        return (*self.namespace, "history", kind.value, key)

    @property
    def cursors(self) -> Namespace:
        """Where it says how much of each thread was seen, by thread."""
        return (*self.namespace, "cursors")

    @property
    def queue(self) -> Namespace:
        """Where messages wait for extraction, those of the scopes below included."""
        return (*self.namespace, "queue")

    def lane(self, thread: str) -> str:
        """Return one string for a thread of this scope; no two threads share it."""
        return encode_namespace((*self.namespace, thread))


def current_key(kind: MemoryType, key: str) -> str:
    """Return what a current memory is stored under; no type has a colon in its name."""
    return f"{kind.value}:{key}"


def split_key(name: str) -> tuple[MemoryType, str] | None:
    """Return the type and key that `current_key` put together; `None`: it did not."""
    kind, _, key = name.partition(":")
    return (MemoryType(kind), key) if key and kind in _TYPES else None


def user_namespace(prefix: Namespace, user_id: str) -> Namespace:
    """Return the namespace of a user's memories."""
    return (*prefix, _USERS, user_id)


async def namespace_of(
    state: Any, prefix: Namespace, resolver: NamespaceResolver | None = None
) -> Namespace | None:
    """Return the namespace of the memories a run may see; `None`: none at all.

    Args:
        state: The state of the run; its metadata may have a `user_id`.
        prefix: The namespace of whatever has no user.
        resolver: Decides in place of the `user_id`.

    Raises:
        InvalidNamespaceError: A namespace or a `user_id` that cannot be one, such as an empty
            one. A user who cannot be told apart must not get what belongs to all.
    """
    if resolver is not None:
        found: Any = resolver(state)
        found = await found if isawaitable(found) else found
        return None if found is None else check_namespace(found)
    user_id = _metadata(state).get("user_id")
    if user_id is None:
        return prefix
    if not isinstance(user_id, str):
        raise InvalidNamespaceError(f"a user_id is a string, not {type(user_id).__name__}")
    return check_namespace(user_namespace(prefix, user_id))


def thread_of(state: Any) -> str:
    """Return the name of the run's thread: its `thread_id` in the metadata, else its run id."""
    thread_id = _metadata(state).get("thread_id")
    if isinstance(thread_id, str) and thread_id:
        return thread_id
    return str(getattr(state, "run_id", None) or "thread")


def _metadata(state: Any) -> dict[str, Any]:
    return getattr(state, "metadata", None) or {}
