"""The target of an erasure, its words and its source messages, and the items that go; pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from locus_memory.errors import InvalidArgumentError
from locus_memory.memory.layers.episodes import Episode, read_episode
from locus_memory.memory.ledger.revision import memory_in, read_memory
from locus_memory.memory.ledger.wording import search_text
from locus_memory.memory.models import Memory, MemoryType, as_type
from locus_memory.memory.scope import Scope, split_key, user_namespace
from locus_memory.memory.validity import said_at
from locus_memory.store.item import (
    Namespace,
    StoreItem,
    check_identifier,
    check_key,
    check_namespace,
)
from locus_memory.store.text import query_words, whole_words

__all__ = [
    "Choice",
    "Kind",
    "Name",
    "Named",
    "Sources",
    "named",
    "text_of",
    "thread_of_job",
]

Kind = Literal[
    "current",
    "past",
    "vitals",
    "jobs",
    "cursors",
    "episodes",
    "turns",
    "log",
    "blocks",
    "summaries",
    "items",
]
"""What an item is; the blocks show what other items hold, and go with any of them."""

Name = tuple[Namespace, str]
"""The namespace and the key of an item."""

Named = tuple[MemoryType, str]
"""The type and the key of a memory."""

_KINDS: Final[Mapping[tuple[str, int], Kind]] = {
    ("current", 0): "current",
    ("history", 2): "past",
    ("vitals", 0): "vitals",
    ("cursors", 0): "cursors",
    ("episodes", 0): "episodes",
    ("transcript", 1): "turns",
    ("log", 0): "log",
    ("log", 1): "log",
    ("tending", 0): "log",
    ("blocks", 0): "blocks",
    ("blocks", 1): "blocks",
}
"""The kinds by the first label below the scope, and the number of labels after it."""

_TYPES: Final = frozenset(MemoryType)

_UNIQUE: Final = re.compile(r"[0-9a-f]{32}")
"""The form of a globally unique message id, as an agent generates it."""

_NUMBER: Final = re.compile(r"#(\d{1,15})")

_Source = tuple[str | None, str]
"""A message: its thread and its id; `#N` is the Nth of the conversation."""


def _finder(queries: Iterable[str]) -> Callable[[str], bool]:
    """Return what says whether a text has all words of a query, in any form and any order.

    Args:
        queries: The queries; one without words finds nothing.
    """
    wanted = [whole_words(query).asked() for query in queries if query_words(query)]

    def finds(text: str) -> bool:
        return bool(wanted) and any(map(whole_words(text).finder(), wanted))

    return finds


class Sources:
    """The source messages of memories.

    A message with a globally unique id is recognised in a fork of its thread as well. The
    transcript tells the number of a message with an id. Without it, the episodes of the thread
    go that name the message or tell of the moment of the statement; without a moment, all of them.
    """

    def __init__(self) -> None:
        self._unique: set[str] = set()
        self._moments: dict[_Source, set[str]] = {}
        self._numbers: dict[str | None, set[int]] = {}
        self._placed: set[tuple[str | None, object]] = set()

    def __bool__(self) -> bool:
        return bool(self._moments)

    def add(self, thread: str | None, name: str, *moments: str) -> None:
        """Add a message.

        Args:
            thread: Its thread.
            name: Its id, or `#N` for the Nth of the thread.
            moments: The moments of statements that were made from it.
        """
        self._moments.setdefault((thread, name), set()).update(moments)
        if _UNIQUE.fullmatch(name):
            self._unique.add(name)
        if number := _NUMBER.fullmatch(name):
            self._place(thread, name, int(number[1]))

    def add_memory(self, memory: Memory) -> None:
        """Add the messages of a version of a memory."""
        thread, ids = map(memory.metadata.get, ("thread_id", "message_ids"))
        names = [name for name in ids if isinstance(name, str)] if isinstance(ids, list) else []
        # If a memory names only its thread, any message of it may be the source.
        for name in names or ["#"]:
            moments = filter(None, [said_at(memory)])
            self.add(thread if isinstance(thread, str) else None, name, *moments)

    def are_of(self, thread: str, ids: Collection[str]) -> bool:
        """Return whether a message is of a thread, or of one whose fork it is.

        Args:
            thread: The thread.
            ids: The ids of its messages.
        """
        return any(own == thread for own, _ in self._moments) or not self._unique.isdisjoint(ids)

    def has(self, thread: str | None, *names: object) -> bool:
        """Return whether a message is a source, or a copy of one in a fork of its thread.

        Args:
            thread: The thread of the message.
            names: Its id, and `#N` for the Nth of the thread.
        """
        known = [name for name in names if isinstance(name, str)]
        return any((thread, name) in self._moments or name in self._unique for name in known)

    def has_turn(self, turn: StoreItem) -> bool:
        """Return whether a recorded turn is a source; if so, its number is known from now on."""
        thread, number = turn.namespace[-1], turn.metadata.get("number")
        names = (turn.metadata.get("turn"), f"#{number}")
        if not self.has(thread, *names):
            return False
        if isinstance(number, int):
            for name in names:
                self._place(thread, name, number)
        return True

    def are_in(self, episode: Episode) -> bool:
        """Return whether an episode tells of a source message, or may do so."""
        return (
            any(
                self.has(each.thread or episode.session_id, *each.message_ids)
                for each in episode.notes
            )
            or any(
                first <= number <= last
                for thread, first, last in episode.all_turns
                for number in self._numbers.get(thread, ())
            )
            or any(
                _may_tell(episode, thread, moments)
                for (thread, name), moments in self._moments.items()
                if (thread, name) not in self._placed
            )
        )

    def _place(self, thread: str | None, name: object, number: int) -> None:
        self._numbers.setdefault(thread, set()).add(number)
        self._placed.add((thread, name))


@dataclass(slots=True, kw_only=True)
class Choice:
    """The target of an erasure, and the choice of the items that go.

    Without a key and words, the target is all data of the user. Else the choice learns from the
    items that it is asked about. So it is asked in this order: the current memories, past ones,
    vital signs, turns, and then the others.

    Attributes:
        scope: The scope of the memories.
        prefix: The prefix of the namespaces of the queue and the summaries.
        user_id: The user of the scope, if it has one.
        kind: The type of the memories; `None`: all.
        key: One key, or `None`.
        has_words: Returns whether a text has the words of the query; `None`: there is none.
        threads: The threads that are erased as a whole, each with the number of its checkpoints.
        sources: The source messages of the memories.
        contents: The contents of the memories.
        memories: The current memories found, with whether they go.
        ended: The memories of which a version goes, and no current one stays.
        mentions: The keys of episodes that mention a memory that goes.
    """

    scope: Scope
    prefix: Scope
    user_id: str | None
    kind: MemoryType | None
    key: str | None
    has_words: Callable[[str], bool] | None
    threads: dict[str, int] = field(default_factory=dict[str, int])
    sources: Sources = field(default_factory=Sources)
    contents: set[str] = field(default_factory=set[str])
    memories: dict[Named, bool] = field(default_factory=dict[Named, bool])
    ended: set[Named] = field(default_factory=set[Named])
    mentions: set[str] = field(default_factory=set[str])
    _tells: Callable[[str], bool] | None = None

    @classmethod
    def of(
        cls,
        user_id: str | None,
        key: str | None,
        kind: MemoryType | str | None,
        query: str | None,
        prefix: Namespace,
    ) -> Choice:
        """Return the choice that the arguments of `forget` describe.

        Raises:
            InvalidArgumentError: They describe no target, or two.
        """
        if key is not None and query is not None:
            raise InvalidArgumentError("forget by key or by query, not by both")
        if key is None and query is None and user_id is None:
            raise InvalidArgumentError("give a target to forget: a user_id, a key or a query")
        if key is None and query is None and kind is not None:
            raise InvalidArgumentError("a type needs a key or a query")
        if query is not None and not query_words(query):
            raise InvalidArgumentError("a query to forget by needs at least one word")
        scope = check_namespace(prefix)
        if user_id is not None:
            scope = user_namespace(prefix, check_identifier(user_id, "a user id"))
        return cls(
            scope=Scope(scope),
            prefix=Scope(prefix),
            user_id=user_id,
            kind=None if kind is None else as_type(kind),
            key=None if key is None else check_key(key),
            has_words=None if query is None else _finder([query]),
        )

    @property
    def is_user(self) -> bool:
        """Whether the target is all data of the user."""
        return self.key is None and self.has_words is None

    def kind_of(self, item: StoreItem) -> Kind:
        """Return what an item is."""
        if item.namespace == self.prefix.queue:
            return "jobs"
        depth = len(self.scope.namespace)
        is_ours = item.namespace[:depth] == self.scope.namespace
        first, *others = (item.namespace[depth:] if is_ours else ()) or ("",)
        kind: Kind = _KINDS.get((first, len(others)), "items")
        is_foreign = kind == "current" and split_key(item.key) is None
        is_foreign = is_foreign or (kind == "past" and others[0] not in _TYPES)
        return "items" if is_foreign else kind

    def takes(self, kind: Kind, item: StoreItem) -> bool:
        """Return whether an item goes."""
        if self.is_user and kind != "jobs":
            # Below the queue stands nothing of a user but their jobs.
            queue = self.prefix.queue
            return kind != "blocks" and item.namespace[: len(queue)] != queue
        takers: dict[Kind, Callable[[StoreItem], bool]] = {
            "current": self._takes_memory,
            "past": self._takes_memory,
            "vitals": self._takes_vitals,
            "turns": self._takes_turn,
            "episodes": self._takes_episode,
            "cursors": lambda cursor: cursor.key in self.threads,
            "jobs": self._takes_job,
        }
        return kind in takers and takers[kind](item)

    def tells(self, text: str) -> bool:
        """Return whether a text beside the memories says what is erased."""
        if self._tells is None:
            # Only memories have a type: with one, other texts are searched for the memories.
            is_open = self.has_words is not None and self.kind is None
            self._tells = (self.has_words if is_open else None) or _finder(self.contents)
        return self._tells(text)

    def _takes_memory(self, item: StoreItem) -> bool:
        name, is_current = named(item.namespace, item.key), split_key(item.key) is not None
        memory = read_memory(item) if is_current else memory_in(item.value)
        if self.has_words is None:
            is_it = name[1] == self.key
        else:
            is_it = memory is not None and self.has_words(search_text(memory))
        is_it = is_it and self.kind in (None, name[0])
        if is_current:
            self.memories[name] = is_it
        is_it = is_it or self.memories.get(name, False)
        if is_it and self.memories.get(name, True):
            self.ended.add(name)
        if is_it and memory is not None:
            self.sources.add_memory(memory)
            self.contents.add(memory.content)
        return is_it

    def _takes_vitals(self, item: StoreItem) -> bool:
        """Return whether the record is of a memory that goes, and learn who stated the memory.

        It names every statement of a memory, also those that changed no version of it.
        """
        is_it = split_key(item.key) in self.ended
        # Whatever else is damaged in it.
        told = item.value if is_it and isinstance(item.value, Mapping) else {}
        stated = told.get("messages")
        for each in stated if isinstance(stated, list) else ():
            match each:
                case [thread, name]:
                    # Of the earlier statements, the moments are unknown: their notes name them.
                    self.sources.add(str(thread), str(name), str(told.get("told_at") or ""))
                case _:
                    pass
        # Earlier versions kept the keys of the episodes that mention the memory.
        self.mentions.update(each for each in told.get("sources") or () if isinstance(each, str))
        return is_it

    def _takes_turn(self, item: StoreItem) -> bool:
        # Asked about each source, so that its number is known.
        is_source = self.sources.has_turn(item)
        return is_source or item.namespace[-1] in self.threads or self.tells(text_of(item.value))

    def _takes_episode(self, item: StoreItem) -> bool:
        episode = read_episode(item)
        return episode is not None and (
            item.key in self.mentions
            or any(thread in self.threads for thread, _, _ in episode.all_turns)
            or self.tells(episode.text)
            or self.sources.are_in(episode)
        )

    def _takes_job(self, item: StoreItem) -> bool:
        job = item.value if isinstance(item.value, Mapping) else {}
        namespace, scope = job.get("namespace"), list(self.scope.namespace)
        if self.is_user:
            return isinstance(namespace, list) and namespace[: len(scope)] == scope
        messages, thread = job.get("messages"), thread_of_job(item)
        said = [*(messages if isinstance(messages, list) else ()), job.get("context")]
        return namespace == scope and (
            thread in self.threads
            or any(self._is_meant(thread, each) for each in said if isinstance(each, Mapping))
        )

    def _is_meant(self, thread: str, message: Mapping[str, Any]) -> bool:
        """Return whether a waiting message is a source, or has the words of the query."""
        is_told = self.has_words is not None and self.has_words(str(message.get("content")))
        return is_told or self.sources.has(thread, message.get("id"), f"#{message.get('number')}")


def named(namespace: Namespace, key: str) -> Named:
    """Return the type and the key of the memory of a current item or an item of a history."""
    return split_key(key) or (MemoryType(namespace[-2]), namespace[-1])


def thread_of_job(item: StoreItem) -> str:
    """Return the thread of a job that waits for extraction."""
    thread = item.value.get("thread") if isinstance(item.value, Mapping) else None
    return thread if isinstance(thread, str) else item.key


def _may_tell(episode: Episode, thread: str | None, moments: Collection[str]) -> bool:
    """Return whether an episode may tell of a message of a thread whose number is unknown."""
    if thread != episode.session_id:
        # The moments of a session that was merged into the episode are unknown.
        return any(thread == session for session, _, _ in episode.joined_turns)
    return not moments or any(episode.started_at <= each <= episode.ended_at for each in moments)


def text_of(value: Any) -> str:
    """Return the `text` of a stored value; empty if it has none."""
    text = value.get("text") if isinstance(value, Mapping) else None
    return text if isinstance(text, str) else ""
