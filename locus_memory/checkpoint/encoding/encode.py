"""From a state to the JSON of its next record: full, or a delta against an earlier record.

Pure: this module decides and encodes; the engine stores.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import orjson

from locus_memory._internal.sameness import is_plain, own_copy
from locus_memory.checkpoint.delta import apply, diff, stays_plain
from locus_memory.checkpoint.encoding.chain_cache import CachedChain, Link, texts_of
from locus_memory.checkpoint.encoding.frames import dumps, size_of
from locus_memory.checkpoint.encoding.levels import place
from locus_memory.errors import ValueNotSerializableError
from locus_memory.store.json_values import round_trip

__all__ = ["MAX_REPLAY_RATIO", "Draft", "draft"]

MAX_REPLAY_RATIO = 2.0
"""A chain ends when a load would read more than this many times the state itself."""

_SLACK = 4096
"""Bytes that a chain may always have: the ratio is not meaningful for a tiny state."""

_WORTH_SHARING = 1024
"""Bytes: the strings of a smaller part are not worth a search."""


@dataclass(frozen=True, slots=True)
class Draft:
    """The next record, not yet compressed, and the chain once it is stored."""

    document: bytes
    base: int | None
    level: int
    cached: CachedChain


def draft(
    state: dict[str, Any],
    cached: CachedChain,
    *,
    checkpoint_id: str,
    revision: int,
    max_chain_depth: int,
    shared: Sequence[str] = (),
    is_owned: bool = False,
) -> Draft:
    """Return the draft of the record that makes `state` the newest of its thread.

    Args:
        state: The state to save.
        cached: The chain of the newest record, without the record that the next one replaces.
        shared: The keys of the state's parts that never change. They are cached as they are, so
            that they can be compared by identity; all other parts are copied.
        is_owned: Whether the state is a copy for this record alone, and is JSON: then it is
            neither checked nor copied again.
        checkpoint_id: The record's id.
        revision: The record's revision.
        max_chain_depth: At most this many deltas are replayed by a load.

    Raises:
        ValueNotSerializableError: The state is not JSON; names the path.
    """
    known = _known(cached.links)
    links, level = _base(known)
    full = partial(_full, state, checkpoint_id, revision, shared, is_owned=is_owned)
    if not links or len(links) > max_chain_depth:
        return full()
    newest, base = known[-1], links[-1]
    try:
        change = diff(newest.document, state, plain=newest.plain, texts=newest.texts)
        encoded, copied = (dumps(change), change) if is_owned else _copied(change)
        # The strings of the state, so that the next comparison finds the same objects.
        document = apply(newest.document, copied, state)
        if base is not newest:
            encoded = dumps(diff(base.document, document, plain=base.plain))
    except (ValueNotSerializableError, orjson.JSONEncodeError, RecursionError):
        # The state nests too deep for a delta, or it is not JSON: then this call raises the error.
        return full()
    replayed = base.replayed + len(encoded)
    full_size = max(0, cached.full_size + growth(newest.document, change))
    if _costly(replayed, encoded, full_size):
        full_size = size_of(document)
        if _costly(replayed, encoded, full_size):
            return full()
    document |= {key: state[key] for key in shared}
    plain = newest.plain and stays_plain(copied)
    texts = _texts_after(newest.texts, document, copied)
    link = Link(revision, checkpoint_id, level, replayed, document, plain, texts)
    return Draft(encoded, base.revision, level, CachedChain.extended(links, link, full_size))


def _base(known: tuple[Link, ...]) -> tuple[tuple[Link, ...], int]:
    """Return the links that the next delta keeps before it, and its level."""
    kept, level = place([link.level for link in known[1:]])
    links = _known(known[: kept + 1])
    # If the first state of a row is no longer cached, the row continues from a cached one.
    return links, level if len(links) > kept else 0


def _costly(replayed: int, encoded: bytes, full_size: int) -> bool:
    """Whether a full state is the better record."""
    return replayed > full_size * MAX_REPLAY_RATIO + _SLACK or len(encoded) >= full_size


def _copied(part: Any) -> tuple[bytes, Any]:
    """Return a part of a state as JSON, and a copy that shares its keys, strings and numbers.

    These are immutable, so both may share them. That halves the memory, and a later comparison
    finds at once that they are the same objects.
    """
    encoded, copied = round_trip(part)
    return encoded, own_copy(part) if len(encoded) > _WORTH_SHARING else copied


def _full(
    state: dict[str, Any],
    checkpoint_id: str,
    revision: int,
    shared: Sequence[str],
    *,
    is_owned: bool,
) -> Draft:
    encoded, document = (dumps(state), state) if is_owned else _copied(state)
    document |= {key: state[key] for key in shared}
    plain, texts = is_plain(document), texts_of(document)
    link = Link(revision, checkpoint_id, 0, len(encoded), document, plain, texts)
    return Draft(encoded, None, 0, CachedChain((link,), len(encoded)))


def _texts_after(texts: frozenset[str], document: dict[str, Any], delta: Any) -> frozenset[str]:
    """Return the keys without numbers below them after a delta."""
    if delta is None:
        return texts
    if delta[0] == "=":
        return texts_of(document)
    patches: dict[str, Any] = delta[1]
    return texts.difference(patches).union(
        key
        for key, patch in patches.items()
        if (key in texts or (patch is not None and patch[0] == "="))
        and stays_plain(patch, in_list=True)
    )


def _known(links: tuple[Link, ...]) -> tuple[Link, ...]:
    """Return `links` up to the last one whose state is cached."""
    while links and links[-1].document is None:
        links = links[:-1]
    return links


def growth(old: Any, delta: Any) -> int:
    """Return how many bytes of JSON a delta adds to `old`, or a few less; it costs what changed."""
    if delta is None:
        return 0
    kind, *parts = delta
    if kind == "=":
        return size_of(parts[0]) - size_of(old)
    if kind == "s":
        start, dropped, text = parts
        return size_of(text) - size_of(old[start : start + dropped])
    if kind == "l":
        return _list_growth(old, parts[0])
    patches, dropped = parts[0], parts[1] if len(parts) > 1 else ()
    removed = sum(size_of({key: old[key]}) for key in dropped)
    added = sum(size_of(patch[1]) for key, patch in patches.items() if key not in old)
    return added - removed + sum(growth(old[key], patches[key]) for key in patches if key in old)


def _list_growth(old: list[Any], steps: list[Any]) -> int:
    total = position = 0
    for step in steps:
        if isinstance(step, list):
            # Without its brackets.
            total += size_of(step) - 2
            continue
        end = position + (1 if isinstance(step, dict) else abs(step))
        if isinstance(step, dict):
            total += growth(old[position], step["~"])
        elif step < 0:
            total -= size_of(old[position:end])
        position = end
    return total - (size_of(old[position:]) if position < len(old) else 0)
