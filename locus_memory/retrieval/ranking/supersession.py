"""Supersession: an item ranks above the items it supersedes.

A field of an item links to the items that it supersedes or that supersede it. Only links decide,
never similarity or age. A link is one of these, or a list of them:

- the key of another item of the same namespace;
- an object with the `type` and `key` of a versioned record, and the `sequence` of one of its
  versions. Items hold their own `type`, `key` and `sequence` in fields of these names, as the
  memory manager writes them. The versions of a record are in one namespace, or the current one is
  in `(*owner, "current")` and the past ones are in `(*owner, "history", type, key)`; those of two
  owners are never mixed.

A superseded version is also superseded by the current version, which is not superseded itself. So
a version that is not among the candidates breaks no chain.
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
"""A versioned record: its owner, its type and its key."""

_Name = tuple[Hashable, ...]
"""The name of an item in a link: namespace and key, or a versioned record."""


class Standing(NamedTuple):
    """The new position of an item.

    Attributes:
        place: Its former place, from 0.
        instead_of: The former place of the superseded item whose place it took, if any.
        below: The former place of the nearest item above it that supersedes it.
    """

    place: int
    instead_of: int | None = None
    below: int | None = None


def prefer_successors(items: Sequence[StoreItem], *, fields: Fields = _FIELDS) -> list[Standing]:
    """Return the order in which no item is above one that supersedes it.

    An item that was below one that it supersedes moves directly before it. All other items keep
    their order. Links that form a cycle are ignored.

    Args:
        items: A ranking, the best first.
        fields: The names of the fields that hold the links.
    """
    above = _successors([_Version.of(item, fields) for item in items])
    placed: set[int] = set()
    order: list[Standing] = []
    for index in range(len(items)):
        if index in placed:
            continue
        # In a chain, the newest has the fewest above it.
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
    """The names of an item and of its links.

    Attributes:
        names: The names of the item.
        older: The names of the items it supersedes.
        newer: The names of the items that supersede it.
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
        # The current version, which has the name of the record, supersedes all superseded ones.
        return cls(names, older, (*newer, thing)) if newer else cls((*names, thing), older, ())


def _thing(namespace: Namespace, told: Mapping[str, Any]) -> _Thing | None:
    """Return the record that an item is a version of, if its fields name it."""
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
    """Yield the targets of an item's links; invalid links are left out."""
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
    """Return for each item those that supersede it, directly or not, without cycles."""
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
            # A missing item may be superseded by one that is present.
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
    """Return the items that can be reached from an item; itself only in a cycle."""
    found: set[int] = set()
    waiting = [start]
    while waiting:
        new = direct.get(waiting.pop(), frozenset()) - found
        found |= new
        waiting += new
    return found
