"""The import of memories of mem0, with their past versions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from uuid import NAMESPACE_OID, UUID, uuid5

from locus_memory.errors import InvalidArgumentError
from locus_memory.integrations.mem0.export import Exported
from locus_memory.integrations.mem0.history import History, PastVersion
from locus_memory.memory.facts import Fact, read_fact
from locus_memory.memory.manager import LLMMemoryManager

__all__ = ["CopiedMemories", "MemorySource", "import_memories"]


@dataclass(frozen=True, slots=True)
class MemorySource:
    """The history of mem0, what its `get_all` returned, or both.

    Attributes:
        history: The history; `None`: the memories have no past.
        exported: The memories of `get_all`; `None`: all those of the history, without metadata.
        name: Where they come from: it is the `extractor` of each.
    """

    history: History | None = None
    exported: Sequence[Exported] | None = None
    name: str = "mem0"


@dataclass(frozen=True, slots=True)
class CopiedMemories:
    """The result of the import of the memories of one user.

    Attributes:
        user: The user; `None`: those without one.
        memories: Number of memories, the deleted ones included.
        changes: Number of their changes: additions, updates and deletions.
        saved: Number of current memories that this import wrote or changed.
        unreadable: Number of changes that are left out: they are empty, too long, or no changes.
        unknown: Number of memories that are left out, since their user is not known.
    """

    user: str | None
    memories: int = 0
    changes: int = 0
    saved: int = 0
    unreadable: int = 0
    unknown: int = 0


async def import_memories(
    source: MemorySource,
    manager: LLMMemoryManager,
    *,
    user: str | None = None,
    trust: bool = False,
    on_user: Callable[[str | None, int], None] = lambda _, __: None,
) -> list[CopiedMemories]:
    """Write memories of mem0 as memories of their users, with their past versions.

    A memory keeps its id as the `fact_id`, and gets the key `fact:<id>`. What is known already
    changes nothing, so a call can be repeated, also after a kill.

    Args:
        source: The history, the memories of `get_all`, or both. With both, memories that only the
            history has are left out unless `user` names their user.
        manager: The manager of the memories without a user; it bounds the number of past versions.
        user: The user of the memories that name none.
        trust: As for `import_facts`.
        on_user: Called after each user with the number of memories so far.

    Raises:
        BackendError: The database failed; repeat the import.
    """
    plans = _planned(source, user)
    done: list[CopiedMemories] = []
    for name in sorted(plans, key=lambda name: name or ""):
        plan = plans[name]
        scoped = manager if name is None else manager.for_user(name)
        facts = sorted(plan.facts, key=lambda fact: fact.said_at or "")
        saved = len(await scoped.import_history(facts, trust=trust))
        numbers = len(plan.names), len(facts), saved, plan.unreadable, plan.unknown
        done.append(CopiedMemories(name, *numbers))
        on_user(name, sum(each.memories for each in done))
    return done


@dataclass(slots=True)
class _Plan:
    """The changes of the memories of one user."""

    source: str
    names: set[str] = field(default_factory=set[str])
    facts: list[Fact] = field(default_factory=list[Fact])
    unreadable: int = 0
    unknown: int = 0

    def add(
        self, memory_id: str, changes: Sequence[PastVersion], metadata: Mapping[str, Any]
    ) -> None:
        self.names.add(memory_id)
        content = ""
        for change in changes:
            content = content if change.content is None else change.content
            try:
                self.facts.append(_fact(self.source, memory_id, change, content, metadata))
            except InvalidArgumentError:
                self.unreadable += 1


def _planned(source: MemorySource, user: str | None) -> dict[str | None, _Plan]:
    plans: dict[str | None, _Plan] = {}
    history, exported = source.history, source.exported
    for each in exported or ():
        changes = list(_versions(each, [] if history is None else history.of(each.id)))
        name = user if each.user is None else each.user
        plans.setdefault(name, _Plan(source.name)).add(each.id, changes, each.metadata)
    if history is None:
        return plans
    known = {each.id for each in exported or ()}
    others = [name for name in history if name not in known]
    is_unknown = exported is not None and user is None
    if others or history.unreadable:
        plan = plans.setdefault(user, _Plan(source.name))
        plan.unreadable += history.unreadable
        plan.unknown = len(others) if is_unknown else 0
        for name in [] if is_unknown else others:
            plan.add(name, history.of(name), {})
    return plans


def _versions(memory: Exported, changes: Sequence[PastVersion]) -> Iterator[PastVersion]:
    """Yield the changes of a memory, and its exported content if that is newer than all of them."""
    yield from changes
    if not changes:
        yield PastVersion(memory.at or datetime(1970, 1, 1, tzinfo=UTC), memory.content)
        return
    last = changes[-1]
    if memory.at is not None and memory.at > last.at and memory.content != last.content:
        yield PastVersion(memory.at, memory.content)


def _fact(
    source: str, memory_id: str, change: PastVersion, content: str, metadata: Mapping[str, Any]
) -> Fact:
    """Return a change as a fact.

    Raises:
        InvalidArgumentError: Its content is empty or too long.
    """
    value = {
        "id": _name(source, memory_id),
        "content": content,
        "source": source,
        "created_at": change.at.isoformat(),
        "metadata": dict(metadata),
    }
    fact = read_fact(value)
    return Fact(fact.memory, fact.said_at, deleted=change.content is None)


def _name(source: str, memory_id: str) -> str:
    """Return the id of a fact: its own, if it is 32 hexadecimal digits."""
    try:
        return UUID(memory_id).hex
    except ValueError:
        return uuid5(NAMESPACE_OID, f"{source}:{memory_id}").hex
