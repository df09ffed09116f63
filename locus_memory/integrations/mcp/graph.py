"""The knowledge graph of the reference memory server, over any store.

An entity is an item whose key is its name, a relation an item whose key is a digest of its three
fields. So two processes that change different entities never wait for each other, and a damaged
item costs itself alone.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, TypeVar

import orjson

from locus_memory.errors import InvalidArgumentError
from locus_memory.events import emit
from locus_memory.integrations.reading import get_readable, readable
from locus_memory.integrations.writing import written
from locus_memory.store.base import BaseStore
from locus_memory.store.item import Delete, Namespace, Put, StoreItem, check_namespace, quick_put

__all__ = ["Entity", "Graph", "GraphImport", "KnowledgeGraph", "Relation", "graph_text"]

_BATCH: Final = 100

_Answer = TypeVar("_Answer")
_Value = TypeVar("_Value", "Entity", "Relation")
_Order = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Entity:
    """A node: a name that is unique in its graph, a type, and sentences about it."""

    name: str
    entity_type: str
    observations: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the entity as the reference server writes it."""
        return {
            "name": self.name,
            "entityType": self.entity_type,
            "observations": list(self.observations),
        }


@dataclass(frozen=True, slots=True)
class Relation:
    """An edge: the names of two entities, which need not exist, and its type."""

    source: str
    target: str
    relation_type: str

    def to_json(self) -> dict[str, Any]:
        """Return the relation as the reference server writes it."""
        return {"from": self.source, "to": self.target, "relationType": self.relation_type}

    @property
    def key(self) -> str:
        """The key of its item."""
        fields = orjson.dumps([self.source, self.target, self.relation_type])
        return sha256(fields).hexdigest()


@dataclass(frozen=True, slots=True)
class Graph:
    """A graph or a part of it, in the order in which it was made."""

    entities: tuple[Entity, ...] = ()
    relations: tuple[Relation, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the graph as the reference server answers with it."""
        return {
            "entities": [each.to_json() for each in self.entities],
            "relations": [each.to_json() for each in self.relations],
        }

    def to_text(self) -> str:
        """Return the JSON as the reference server writes it."""
        return graph_text(self.to_json())

    def around(self, entities: Iterable[Entity]) -> Graph:
        """Return some of the entities, and the relations that begin or end at one of them."""
        chosen = tuple(entities)
        names = {each.name for each in chosen}
        relations = (each for each in self.relations if not names.isdisjoint(_ends(each)))
        return Graph(chosen, tuple(relations))


@dataclass(frozen=True, slots=True)
class GraphImport:
    """What an import did.

    Attributes:
        entities: The entities that were not there.
        relations: The relations that were not there.
        observations: The observations that entities which were there have got.
        skipped: The numbers of the lines that are no entity and no relation.
    """

    entities: int = 0
    relations: int = 0
    observations: int = 0
    skipped: tuple[int, ...] = ()


class KnowledgeGraph:
    """The entities and relations of one caller.

    Every change is all or nothing where the store has transactions, and is made again if another
    writer was first. A damaged item is left out and told by `integrations.item_unreadable`.

    Args:
        store: The store, open.
        namespace: The namespace of the caller's memories; the graph is at its part `graph`.
        clock: Returns nanoseconds since the epoch, for the order of a listing.
    """

    def __init__(
        self, store: BaseStore, namespace: Namespace, *, clock: Callable[[], int] = time.time_ns
    ) -> None:
        check_namespace(namespace)
        self._store, self._clock = store, clock
        self._entities = (*namespace, "graph", "entities")
        self._relations = (*namespace, "graph", "relations")

    def of(self, namespace: Namespace) -> KnowledgeGraph:
        """Return the graph of another caller in the same store."""
        return KnowledgeGraph(self._store, namespace, clock=self._clock)

    async def create_entities(self, entities: Sequence[Entity]) -> list[Entity]:
        """Add the entities whose names are new, and return them.

        Of two with one name, the first is added.
        """
        named = {_key(each.name): each for each in reversed(entities)}
        return await self._created(self._entities, dict(reversed(named.items())))

    async def create_relations(self, relations: Sequence[Relation]) -> list[Relation]:
        """Add the relations that are new, and return them."""
        return await self._created(self._relations, {each.key: each for each in relations})

    async def add_observations(
        self, additions: Sequence[tuple[str, Sequence[str]]]
    ) -> list[tuple[str, list[str]]]:
        """Add observations to entities, and return those of each that are new to it.

        Raises:
            InvalidArgumentError: There is no such entity; nothing is written.
        """
        found = await self._found(name for name, _ in additions)
        for name, _ in additions:
            if name not in found:
                raise InvalidArgumentError(f"Entity with name {name} not found")
        if not self._store.capabilities.transactions and len(found) > 1:
            return [done for each in additions for done in await self.add_observations([each])]

        async def attempt() -> tuple[list[tuple[str, list[str]]], list[Put | Delete]]:
            found = await self._found(name for name, _ in additions)
            known = {name: entity.observations for name, (_, entity) in found.items()}
            answer: list[tuple[str, list[str]]] = []
            for name, contents in additions:
                if name not in known:
                    raise InvalidArgumentError(f"Entity with name {name} not found")
                new = [each for each in contents if each not in known[name]]
                known[name] = (*known[name], *new)
                answer.append((name, new))
            return answer, self._replaced(found, known)

        return await written(self._store, attempt)

    async def delete_entities(self, names: Sequence[str]) -> None:
        """Delete entities, and the relations that begin or end at one of the names."""
        gone = set(names)

        async def attempt() -> tuple[None, list[Put | Delete]]:
            keys = [
                item.key
                async for item, relation in readable(self._store, self._relations, _relation)
                if not gone.isdisjoint(_ends(relation))
            ]
            deletes: list[Put | Delete] = [
                Delete(namespace=self._relations, key=each) for each in keys
            ]
            deletes += [Delete(namespace=self._entities, key=_key(each)) for each in sorted(gone)]
            return None, deletes

        await written(self._store, attempt)

    async def delete_observations(self, deletions: Sequence[tuple[str, Sequence[str]]]) -> None:
        """Delete observations of entities; what is not there is left out."""

        async def attempt() -> tuple[None, list[Put | Delete]]:
            found = await self._found(name for name, _ in deletions)
            known = {name: entity.observations for name, (_, entity) in found.items()}
            for name, gone in deletions:
                known[name] = tuple(e for e in known.get(name, ()) if e not in gone)
            return None, self._replaced(found, known)

        await written(self._store, attempt)

    async def delete_relations(self, relations: Sequence[Relation]) -> None:
        """Delete relations; what is not there is left out."""

        async def attempt() -> tuple[None, list[Put | Delete]]:
            keys = sorted({each.key for each in relations})
            return None, [Delete(namespace=self._relations, key=each) for each in keys]

        await written(self._store, attempt)

    async def read(self) -> Graph:
        """Return the whole graph."""
        entities = await self._listed(self._entities, _entity)
        return Graph(entities, await self._listed(self._relations, _relation))

    async def search(self, query: str) -> Graph:
        """Return the entities with this text in name, type or observations, and their relations."""
        graph, text = await self.read(), query.lower()
        return graph.around(each for each in graph.entities if _has(each, text))

    async def open_nodes(self, names: Sequence[str]) -> Graph:
        """Return the entities with these names, and their relations."""
        graph, wanted = await self.read(), set(names)
        return graph.around(each for each in graph.entities if each.name in wanted)

    async def import_file(self, path: str | Path) -> GraphImport:
        """Take over the JSONL file of the reference server; repeating it changes nothing.

        An entity that is there gets the observations that it lacks. A line that is no entity and
        no relation is skipped and told by the event `integrations.line_skipped`.

        Raises:
            OSError: The file cannot be read.
        """
        text = await asyncio.to_thread(Path(path).read_bytes)
        entities, relations, skipped = _parsed(text)
        added = await self._in_batches(self.create_entities, entities)
        new = {each.name for each in added}
        known = await self._found(each.name for each in entities if each.name not in new)
        there = [(each.name, each.observations) for each in entities if each.name in known]
        observed = await self._in_batches(self.add_observations, there)
        related = await self._in_batches(self.create_relations, relations)
        return GraphImport(
            len(added), len(related), sum(len(each) for _, each in observed), tuple(skipped)
        )

    async def _in_batches(
        self, change: Callable[[Sequence[Any]], Awaitable[list[_Answer]]], values: Sequence[Any]
    ) -> list[_Answer]:
        done: list[_Answer] = []
        for start in range(0, len(values), _BATCH):
            done += await change(values[start : start + _BATCH])
        return done

    async def _created(self, namespace: Namespace, values: Mapping[str, _Value]) -> list[_Value]:
        """Add the values whose keys are new, and return them."""

        async def attempt(part: Mapping[str, _Value]) -> tuple[list[_Value], list[Put | Delete]]:
            # A damaged item takes its key, too.
            free = [k for k in part if not await self._store.exists(namespace, k)]
            now = self._clock()
            puts: list[Put | Delete] = [
                quick_put(
                    namespace, key, {**part[key].to_json(), "order": [now, number]}, if_version=0
                )
                for number, key in enumerate(free)
            ]
            return [part[key] for key in free], puts

        # Without transactions, each value is written alone: else a second attempt would not know
        # which values the first one wrote.
        together = self._store.capabilities.transactions
        done: list[_Value] = []
        for part in [values] if together else [{key: each} for key, each in values.items()]:
            done += await written(self._store, partial(attempt, part))
        return done

    async def _found(self, names: Iterable[str]) -> dict[str, tuple[StoreItem, Entity]]:
        found: dict[str, tuple[StoreItem, Entity]] = {}
        for name in dict.fromkeys(names):
            one = await get_readable(self._store, self._entities, _key(name), _entity)
            if one is not None:
                found[name] = one
        return found

    def _replaced(
        self, found: dict[str, tuple[StoreItem, Entity]], known: dict[str, tuple[str, ...]]
    ) -> list[Put | Delete]:
        """Return the puts of the entities whose observations changed."""
        return [
            quick_put(
                self._entities,
                item.key,
                {**item.value, **replace(entity, observations=known[name]).to_json()},
                if_version=item.version,
            )
            for name, (item, entity) in found.items()
            if known[name] != entity.observations
        ]

    async def _listed(
        self, namespace: Namespace, decode: Callable[[StoreItem], _Answer]
    ) -> tuple[_Answer, ...]:
        def ordered(item: StoreItem) -> tuple[_Order, _Answer]:
            moment, number = item.value["order"]
            return (int(moment), int(number)), decode(item)

        found = [each async for each in readable(self._store, namespace, ordered)]
        return tuple(one for _, (_, one) in sorted(found, key=lambda e: (e[1][0], e[0].key)))


def graph_text(value: Any) -> str:
    """Return JSON as the reference server writes it."""
    return orjson.dumps(value, option=orjson.OPT_INDENT_2).decode()


def _key(name: str) -> str:
    """Return the key of an entity; no key is empty, and a name may be."""
    return f"={name}"


def _ends(relation: Relation) -> tuple[str, str]:
    return relation.source, relation.target


def _has(entity: Entity, text: str) -> bool:
    texts = (entity.name, entity.entity_type, *entity.observations)
    return any(text in each.lower() for each in texts)


def _entity(item: StoreItem) -> Entity:
    return _entity_of(item.value)


def _relation(item: StoreItem) -> Relation:
    return _relation_of(item.value)


def _entity_of(value: Any) -> Entity:
    """Return the entity of a JSON object.

    Raises:
        TypeError: It is none.
        LookupError: It lacks a field.
    """
    observations = value["observations"]
    texts = [value["name"], value["entityType"], *observations]
    if not isinstance(observations, list) or not all(isinstance(each, str) for each in texts):
        raise TypeError("an entity has a name, an entityType and observations, all of them texts")
    return Entity(value["name"], value["entityType"], tuple(observations))


def _relation_of(value: Any) -> Relation:
    """Return the relation of a JSON object.

    Raises:
        TypeError: It is none.
        LookupError: It lacks a field.
    """
    texts = value["from"], value["to"], value["relationType"]
    if not all(isinstance(each, str) for each in texts):
        raise TypeError("a relation has from, to and relationType, all of them texts")
    return Relation(*texts)


def _parsed(text: bytes) -> tuple[list[Entity], list[Relation], list[int]]:
    """Return the entities and relations of a file, and the numbers of its other lines."""
    entities: dict[str, Entity] = {}
    relations: list[Relation] = []
    skipped: list[int] = []
    for number, line in enumerate(text.removeprefix(b"\xef\xbb\xbf").split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            found = _of_line(line)
        except (ValueError, TypeError, LookupError) as error:
            emit("integrations.line_skipped", error=error, line=number)
            skipped.append(number)
            continue
        if isinstance(found, Entity):
            entities[found.name] = _joined(entities.get(found.name), found)
        else:
            relations.append(found)
    return list(entities.values()), relations, skipped


def _of_line(line: bytes) -> Entity | Relation:
    """Return what a line of the file has.

    Raises:
        ValueError: It is neither.
        TypeError: A field is no text.
        LookupError: It lacks a field.
    """
    value = orjson.loads(line)
    if value["type"] == "entity":
        return _entity_of(value)
    if value["type"] == "relation":
        return _relation_of(value)
    raise ValueError("neither an entity nor a relation")


def _joined(known: Entity | None, entity: Entity) -> Entity:
    """Return an entity with the observations of one more line that has its name."""
    if known is None:
        return entity
    new = (each for each in entity.observations if each not in known.observations)
    return replace(known, observations=(*known.observations, *new))
