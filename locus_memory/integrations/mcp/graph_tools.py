"""The nine tools of the reference memory server: same names, arguments and shapes of answers.

They follow `@modelcontextprotocol/server-memory` 2026.8.31. Its answers are JSON, so these are not
fenced: each stored text is a JSON string.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Final

from mcp_types import CallToolResult, TextContent
from pydantic import BaseModel, Field

from locus_memory.integrations.mcp.graph import (
    Entity,
    Graph,
    KnowledgeGraph,
    Relation,
    graph_text,
)

__all__ = ["SCHEMAS", "graph_functions"]

_MOST: Final = 100
"""The most entities, relations or observations of one call."""

Name = Annotated[str, Field(max_length=500)]
Text = Annotated[str, Field(max_length=4_000)]
Texts = Annotated[list[Text], Field(max_length=_MOST)]
Names = Annotated[list[Name], Field(max_length=_MOST, description="An array of entity names")]


class EntityModel(BaseModel):
    """An entity."""

    name: Annotated[Name, Field(description="The name of the entity")]
    entityType: Annotated[Name, Field(description="The type of the entity")]  # noqa: N815 - their name
    observations: Annotated[Texts, Field(description="Sentences about the entity")]

    def value(self) -> Entity:
        """Return the entity."""
        return Entity(self.name, self.entityType, tuple(self.observations))


class RelationModel(BaseModel):
    """A relation."""

    source: Annotated[
        Name, Field(alias="from", description="The name of the entity where the relation starts")
    ]
    to: Annotated[Name, Field(description="The name of the entity where the relation ends")]
    relationType: Annotated[Name, Field(description="The type of the relation")]  # noqa: N815 - their name

    def value(self) -> Relation:
        """Return the relation."""
        return Relation(self.source, self.to, self.relationType)


class AdditionModel(BaseModel):
    """Observations to add to an entity."""

    entityName: Annotated[Name, Field(description="The name of the entity")]  # noqa: N815 - their name
    contents: Annotated[Texts, Field(description="The observations to add")]


class DeletionModel(BaseModel):
    """Observations to delete from an entity."""

    entityName: Annotated[Name, Field(description="The name of the entity")]  # noqa: N815 - their name
    observations: Annotated[Texts, Field(description="The observations to delete")]


class AddedModel(BaseModel):
    """Observations that an entity has got."""

    entityName: str  # noqa: N815 - their name
    addedObservations: list[str]  # noqa: N815 - their name


class _Entities(BaseModel):
    entities: list[EntityModel]


class _Relations(BaseModel):
    relations: list[RelationModel]


class _Results(BaseModel):
    results: list[AddedModel]


class _Done(BaseModel):
    success: bool
    message: str


class _Graph(BaseModel):
    entities: list[EntityModel]
    relations: list[RelationModel]


Entities = Annotated[list[EntityModel], Field(max_length=_MOST)]
Relations = Annotated[list[RelationModel], Field(max_length=_MOST)]

_RESULTS: Final[dict[str, type[BaseModel]]] = {
    "create_entities": _Entities,
    "create_relations": _Relations,
    "add_observations": _Results,
    "delete_entities": _Done,
    "delete_observations": _Done,
    "delete_relations": _Done,
    "read_graph": _Graph,
    "search_nodes": _Graph,
    "open_nodes": _Graph,
}

SCHEMAS: Final[dict[str, dict[str, Any]]] = {
    name: model.model_json_schema(mode="serialization") for name, model in _RESULTS.items()
}
"""The schemas of the structured answers, by tool."""


def graph_functions(graph: KnowledgeGraph) -> list[Callable[..., Any]]:
    """Return the functions of the tools, bound to one graph."""
    return [*_creating(graph), *_deleting(graph), *_reading(graph)]


def _creating(graph: KnowledgeGraph) -> list[Callable[..., Any]]:
    async def create_entities(entities: Entities) -> CallToolResult:
        """Create multiple new entities in the knowledge graph."""
        added = await graph.create_entities([each.value() for each in entities])
        return _listed("entities", [each.to_json() for each in added])

    async def create_relations(relations: Relations) -> CallToolResult:
        """Create multiple new relations between entities. Relations are in active voice."""
        added = await graph.create_relations([each.value() for each in relations])
        return _listed("relations", [each.to_json() for each in added])

    async def add_observations(
        observations: Annotated[list[AdditionModel], Field(max_length=_MOST)],
    ) -> CallToolResult:
        """Add new observations to existing entities in the knowledge graph."""
        pairs = [(each.entityName, each.contents) for each in observations]
        added = await graph.add_observations(pairs)
        return _listed("results", [{"entityName": n, "addedObservations": o} for n, o in added])

    return [create_entities, create_relations, add_observations]


def _deleting(graph: KnowledgeGraph) -> list[Callable[..., Any]]:
    async def delete_entities(entityNames: Names) -> CallToolResult:  # noqa: N803 - their name
        """Delete multiple entities and their relations from the knowledge graph."""
        await graph.delete_entities(entityNames)
        return _done("Entities deleted successfully")

    async def delete_observations(
        deletions: Annotated[list[DeletionModel], Field(max_length=_MOST)],
    ) -> CallToolResult:
        """Delete specific observations from entities in the knowledge graph."""
        await graph.delete_observations([(e.entityName, e.observations) for e in deletions])
        return _done("Observations deleted successfully")

    async def delete_relations(relations: Relations) -> CallToolResult:
        """Delete multiple relations from the knowledge graph."""
        await graph.delete_relations([each.value() for each in relations])
        return _done("Relations deleted successfully")

    return [delete_entities, delete_observations, delete_relations]


def _reading(graph: KnowledgeGraph) -> list[Callable[..., Any]]:
    async def read_graph() -> CallToolResult:
        """Read the entire knowledge graph."""
        return _whole(await graph.read())

    async def search_nodes(
        query: Annotated[
            Text, Field(description="A text in the names, types and observations of entities")
        ],
    ) -> CallToolResult:
        """Search for nodes in the knowledge graph."""
        return _whole(await graph.search(query))

    async def open_nodes(names: Names) -> CallToolResult:
        """Open specific nodes in the knowledge graph by their names."""
        return _whole(await graph.open_nodes(names))

    return [read_graph, search_nodes, open_nodes]


def _listed(name: str, values: list[dict[str, Any]]) -> CallToolResult:
    return _result(graph_text(values), {name: values})


def _whole(graph: Graph) -> CallToolResult:
    return _result(graph.to_text(), graph.to_json())


def _done(message: str) -> CallToolResult:
    return _result(message, {"success": True, "message": message})


def _result(text: str, structured: dict[str, Any]) -> CallToolResult:
    return CallToolResult(
        content=[TextContent(type="text", text=text)], structured_content=structured
    )
