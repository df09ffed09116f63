"""Supersession: an item ranks above the items it supersedes.

A field of an item links to the items that it supersedes or that supersede it. Only links decide,
never similarity or age. A link is the key of another item of the same namespace, or an object with
the `type` and the `key` of another memory there; or it is a list of these. An item that is not
among the candidates breaks no chain.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Final, NamedTuple

from locus_memory.retrieval.ranking.fields import Fields
from locus_memory.store.item import Namespace, StoreItem

__all__ = ["Standing", "prefer_successors"]

_FIELDS: Final = Fields()

_Name = tuple[Namespace, str]
"""The name of an item: its namespace and its key."""


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
    above = _successors([_Linked.of(item, fields) for item in items])
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


class _Linked(NamedTuple):
    """The name of an item, and those of its links.

    Attributes:
        name: The name of the item.
        older: The names of the items it supersedes.
        newer: The names of the items that supersede it.
    """

    name: _Name
    older: tuple[_Name, ...]
    newer: tuple[_Name, ...]

    @classmethod
    def of(cls, item: StoreItem, fields: Fields) -> _Linked:
        told, space = fields.told(item), item.namespace
        links = (_targets(told, each, space) for each in (fields.supersedes, fields.superseded_by))
        return cls((space, item.key), *map(tuple, links))


def _targets(
    told: Mapping[str, Any], names: Iterable[str], namespace: Namespace
) -> Iterator[_Name]:
    """Yield the targets of an item's links; invalid links are left out."""
    written = next((told[name] for name in names if told.get(name) is not None), ())
    for link in written if isinstance(written, list) else (written,):
        match link:
            case {"type": str(kind), "key": str(key)}:
                yield namespace, f"{kind}:{key}"
            case str(key) if key:
                yield namespace, key
            case _:
                pass


def _successors(items: Sequence[_Linked]) -> dict[int, frozenset[int]]:
    """Return for each item those that supersede it, directly or not, without cycles."""
    direct = _direct_successors(items)
    reached = {index: _reached(index, direct) for index in direct}
    return {
        index: frozenset(each for each in found if index not in reached.get(each, ()))
        for index, found in reached.items()
    }


def _direct_successors(items: Sequence[_Linked]) -> dict[int, set[int]]:
    called = _by_name((each.name,) for each in items)
    claimed = _by_name(each.older for each in items)
    direct: dict[int, set[int]] = {}
    for index, item in enumerate(items):
        found = {*claimed.get(item.name, ())}
        for name in item.newer:
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
