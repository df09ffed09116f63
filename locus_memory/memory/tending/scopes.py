"""The scopes that have memories below a prefix."""

from __future__ import annotations

from typing import Final

from locus_memory.memory.models import MemoryType
from locus_memory.memory.scope import Scope, user_namespace
from locus_memory.store.base import BaseStore, all_namespaces
from locus_memory.store.item import Namespace

__all__ = ["scopes_below"]

_LAYERS: Final = ("current", "vitals", "identity", "episodes")
"""Not the log: a pass would keep a scope alive that has nothing else."""

_TYPES: Final = frozenset(MemoryType)


async def scopes_below(store: BaseStore, prefix: Namespace, *, resolved: bool) -> list[Scope]:
    """Return the scopes below a prefix that have memories, in the order of their namespaces.

    Args:
        store: The store; if it cannot list namespaces, the prefix is the only scope.
        prefix: The prefix of a memory manager.
        resolved: Whether a function decides where the scopes are. Else they are the
            prefix and those of users.

    Raises:
        BackendError: The store failed.
    """
    if not store.capabilities.list_namespaces:
        return [Scope(prefix)]
    found: set[Namespace] = set()
    # Of a resolver, a scope that is named `transcript` must not look like turns of its parent.
    turns = () if resolved else (("transcript", "*"),)
    for suffix in (*((layer,) for layer in _LAYERS), *turns):
        spaces = all_namespaces(store, prefix, suffix=suffix)
        owners = {each[: -len(suffix)] async for each in spaces}
        found |= {each for each in owners if _is_scope(each, prefix, resolved=resolved)}
    return list(map(Scope, sorted(found)))


def _is_scope(owner: Namespace, prefix: Namespace, *, resolved: bool) -> bool:
    """Return whether a parent of a layer is a scope, not a part of one.

    The label of a thread or a key may be the name of a layer, such as a thread named `log`.
    """
    rest = owner[len(prefix) :]
    if not resolved:
        return owner == prefix or (bool(rest) and owner == user_namespace(prefix, rest[-1]))
    is_history = owner[-2:-1] == ("history",) and _TYPES.issuperset(owner[-1:])
    is_inside = len(owner) >= len(prefix)
    return is_inside and not is_history and owner[-1:] != ("transcript",)
