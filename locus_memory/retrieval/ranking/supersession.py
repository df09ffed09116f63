"""Knowledge that changes: what supersedes stands above what was superseded.

An item tells in a field what it supersedes, or what supersedes it; links alone decide, never
likeness or age. A link is one of these, or a list of them:

- the key of another item of the same namespace;
- an object with the `type` and `key` of something that has versions, and the `sequence` of one
  of them. Items tell their own in fields of these names, as those that a memory manager
  writes. The versions of one thing are in one namespace, or the current one in `(*owner,
  "current")` and the past ones in `(*owner, "history", type, key)`; those of two owners never
  meet.

A version that is superseded is so by the current version as well, the one that is not
superseded itself; so one that is not among the candidates breaks no chain.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Final, NamedTuple

from locus_memory.retrieval.ranking.fields import Fields
from locus_memory.store.item import Namespace, StoreItem

__all__ = ["Standing", "prefer_successors"]

_FIELDS: Final = Fields()

_Thing = tuple[Namespace, str, str]
"""What has versions: its owner, its type and its key."""

_Name = tuple[Hashable, ...]
"""What a link calls an item: namespace and key, or a thing, with the number of a version or not."""


class Standing(NamedTuple):
    """Where an item stands now.

    Attributes:
        place: Its place before, from 0.
        instead_of: The place before of what it supersedes, where it took the place of that.
        below: The place before of what supersedes it, the nearest one above it.
    """

    place: int
    instead_of: int | None = None
    below: int | None = None


def prefer_successors(items: Sequence[StoreItem], *, fields: Fields = _FIELDS) -> list[Standing]:
    """Return the order in which no item stands above one that supersedes it.

    An item that stood below what it supersedes comes directly before it. Everything else stays
    as it was. What supersedes itself, by way of others or not, is left alone.

    Args:
        items: A ranking, the best first.
        fields: Where items tell what they supersede and what supersedes them.
    """
    above = _successors([_Version.of(item, fields) for item in items])
    placed: set[int] = set()
    order: list[Standing] = []
    for index in range(len(items)):
        if index in placed:
            continue
        # Of a chain, the newest has the fewest above it.
        waiting = above.get(index, frozenset()) - placed
        risen = sorted(waiting, key=lambda each: (len(above.get(each, ())), each))
        standings = [Standing(each, instead_of=index) for each in risen]
        order += [*standings, Standing(index)]
        placed.update(risen, (index,))
    return _with_nearest(order, above)


def _with_nearest(
    order: Sequence[Standing], above: Mapping[int, AbstractSet[int]]
) -> list[Standing]:
    now = {each.place: place for place, each in enumerate(order)}
    return [
        each._replace(below=max(above[each.place], key=now.__getitem__))
        if above.get(each.place)
        else each
        for each in order
    ]


class _Version(NamedTuple):
    """An item as links see it.

    Attributes:
        names: What it is called.
        older: What it supersedes is called.
        newer: What supersedes it is called.
    """

    names: tuple[_Name, ...]
    older: tuple[_Name, ...]
    newer: tuple[_Name, ...]

    @classmethod
    def of(cls, item: StoreItem, fields: Fields) -> _Version:
        told = fields.told(item)
        key, thing = (item.namespace, item.key), _thing(item.namespace, told)
        older = tuple(_targets(told, fields.supersedes, item.namespace, thing))
        newer = tuple(_targets(told, fields.superseded_by, item.namespace, thing))
        if thing is None:
            return cls((key,), older, newer)
        names = key, *_numbered(thing, told)
        # What is superseded is so by the current version, which goes by the name of the thing.
        return cls(names, older, (*newer, thing)) if newer else cls((*names, thing), older, ())


def _thing(namespace: Namespace, told: Mapping[str, Any]) -> _Thing | None:
    """Return what an item is a version of, if it tells."""
    kind, key = told.get("type"), told.get("key")
    if not isinstance(kind, str) or not isinstance(key, str):
        return None
    if namespace[-3:] == ("history", kind, key):
        return namespace[:-3], kind, key
    return (namespace[:-1] if namespace[-1] == "current" else namespace), kind, key


def _numbered(thing: _Thing, told: Mapping[str, Any]) -> tuple[_Name, ...]:
    number = told.get("sequence")
    return ((*thing, number),) if type(number) is int else ()


def _targets(
    told: Mapping[str, Any], names: Iterable[str], namespace: Namespace, thing: _Thing | None
) -> Iterator[_Name]:
    """Yield what the links of an item lead to; what is no link is left out."""
    owner = namespace if thing is None else thing[0]
    written = next((told[name] for name in names if told.get(name) is not None), ())
    for link in written if isinstance(written, list) else (written,):
        if isinstance(link, str) and link:
            yield namespace, link
        elif isinstance(link, dict):
            kind, key = link.get("type"), link.get("key")
            if isinstance(kind, str) and isinstance(key, str):
                target = owner, kind, key
                yield from _numbered(target, link) or (target,)


def _successors(versions: Sequence[_Version]) -> dict[int, frozenset[int]]:
    """Return for each item those that supersede it, directly or not, and that it does not."""
    direct = _direct_successors(versions)
    reached = {index: _reached(index, direct) for index in direct}
    return {
        index: frozenset(each for each in found if index not in reached.get(each, ()))
        for index, found in reached.items()
    }


def _direct_successors(versions: Sequence[_Version]) -> dict[int, set[int]]:
    called = _by_name(each.names for each in versions)
    claimed = _by_name(each.older for each in versions)
    direct: dict[int, set[int]] = {}
    for index, version in enumerate(versions):
        found = {each for name in version.names for each in claimed.get(name, ())}
        for name in version.newer:
            # One that is not there may be superseded by one that is.
            found.update(called.get(name, ()) or claimed.get(name, ()))
        if found - {index}:
            direct[index] = found - {index}
    return direct


def _by_name(named: Iterable[Iterable[_Name]]) -> dict[_Name, list[int]]:
    places: dict[_Name, list[int]] = {}
    for index, names in enumerate(named):
        for name in names:
            places.setdefault(name, []).append(index)
    return places


def _reached(start: int, direct: Mapping[int, AbstractSet[int]]) -> set[int]:
    """Return what can be reached from an item; itself only by way of a cycle."""
    found: set[int] = set()
    waiting = [start]
    while waiting:
        new = direct.get(waiting.pop(), frozenset()) - found
        found |= new
        waiting += new
    return found
