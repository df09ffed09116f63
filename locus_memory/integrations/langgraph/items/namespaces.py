"""The namespaces that LangGraph lists: those of the store, without hidden ones."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Final

from langgraph.store.base import ListNamespacesOp, MatchCondition

from locus_memory._internal.quoting import quote
from locus_memory.errors import InvalidArgumentError
from locus_memory.store.base import BaseStore
from locus_memory.store.hidden_namespaces import FURTHER_VECTORS
from locus_memory.store.item import Namespace, check_limit

__all__ = ["list_namespaces", "roots"]

_PAGE: Final = 500
_AFTER_HIDDEN: Final = (FURTHER_VECTORS + "\x00",)


async def roots(store: BaseStore) -> list[Namespace]:
    """Return the first labels of all namespaces, each as a namespace."""
    return [root async for root in _walk(store, max_depth=1)]


async def list_namespaces(store: BaseStore, op: ListNamespacesOp) -> list[Namespace]:
    """Return the namespaces that LangGraph requests, in ascending order.

    Raises:
        InvalidArgumentError: A match type that is neither prefix nor suffix, or an invalid number.
    """
    check_limit(op.offset, "offset")
    end = op.offset + check_limit(op.limit)
    depth = None if op.max_depth is None else check_limit(op.max_depth, "max_depth")
    conditions = [each for each in op.match_conditions or () if each.path]
    prefixes, suffixes = _paths(conditions, "prefix"), _paths(conditions, "suffix")
    # The contract accepts one of each; further conditions are tested here.
    is_simple = len(prefixes) <= 1 and len(suffixes) <= 1
    fits = _matcher(prefixes[1:], suffixes[1:])
    walk = _walk(
        store,
        prefix=prefixes[0] if prefixes else None,
        suffix=suffixes[0] if suffixes else None,
        max_depth=(depth or None) if is_simple else None,
        page=min(_PAGE, max(1, end)) if is_simple else _PAGE,
    )
    listed: dict[Namespace, None] = {}
    async for namespace in walk:
        if len(listed) >= end:
            break
        if fits(namespace):
            listed.setdefault(namespace[:depth])
    return list(listed)[op.offset : end]


async def _walk(
    store: BaseStore,
    *,
    prefix: Namespace | None = None,
    suffix: Namespace | None = None,
    max_depth: int | None = None,
    page: int = _PAGE,
) -> AsyncIterator[Namespace]:
    after: Namespace | None = None
    while found := await store.list_namespaces(
        prefix, page, suffix=suffix, max_depth=max_depth, after=after
    ):
        for namespace in found:
            if namespace[0] != FURTHER_VECTORS:
                yield namespace
        # All hidden namespaces are skipped in one step.
        after = _AFTER_HIDDEN if found[-1][0] == FURTHER_VECTORS else found[-1]


def _paths(conditions: list[MatchCondition], kind: str) -> list[Namespace]:
    for condition in conditions:
        if condition.match_type not in ("prefix", "suffix"):
            raise InvalidArgumentError(
                f"a match type is 'prefix' or 'suffix', not {quote(condition.match_type)}"
            )
    return [tuple(each.path) for each in conditions if each.match_type == kind]


def _matcher(prefixes: list[Namespace], suffixes: list[Namespace]) -> Callable[[Namespace], bool]:
    def fits(namespace: Namespace) -> bool:
        backwards = namespace[::-1]
        return all(_begins(namespace, each) for each in prefixes) and all(
            _begins(backwards, each[::-1]) for each in suffixes
        )

    return fits


def _begins(namespace: Namespace, path: Namespace) -> bool:
    return len(path) <= len(namespace) and all(
        wanted in ("*", label) for wanted, label in zip(path, namespace, strict=False)
    )
