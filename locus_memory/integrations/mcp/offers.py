"""The tools that a caller is offered: the functions of the sets, described for the protocol."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

import mcp_types as types

from locus_memory._internal.quoting import quote
from locus_memory.errors import ConfigurationError

if TYPE_CHECKING:
    from locus_memory.documents.index import DocumentIndex
    from locus_memory.integrations.mcp.graph import KnowledgeGraph
    from locus_memory.memory.manager import LLMMemoryManager
    from locus_memory.resources.tree import MemoryTree
    from locus_memory.store.base import BaseStore
    from locus_memory.tools import Tool

__all__ = ["DEFAULT_SETS", "Scoped", "ToolSet", "checked_sets", "offers"]

ToolSet = Literal["memory", "conversations", "documents", "resources", "knowledge-graph"]
"""The names of the sets of tools."""

DEFAULT_SETS: Final[tuple[ToolSet, ...]] = ("memory", "conversations", "documents")

_TEXT: Final = {
    "type": "object",
    "properties": {"result": {"type": "string"}},
    "required": ["result"],
}
"""The schema of the structured output of a tool that answers with a text."""

_ADDS: Final = frozenset({"remember", "undo_memory", "write_resource"})
_ADDS_NODES: Final = frozenset({"create_entities", "create_relations", "add_observations"})
_DELETES: Final = frozenset(
    {"forget_memory", "delete_entities", "delete_observations", "delete_relations"}
)


@dataclass(frozen=True, slots=True)
class Scoped:
    """What one caller reads and writes."""

    store: BaseStore
    manager: LLMMemoryManager
    tree: MemoryTree
    graph: KnowledgeGraph
    index: DocumentIndex


def checked_sets(names: Iterable[str]) -> tuple[ToolSet, ...]:
    """Return the sets of tools, each once.

    Raises:
        ConfigurationError: A set is unknown, or there are none.
    """
    given = () if isinstance(names, str) else tuple(dict.fromkeys(names))
    known = get_args(ToolSet)
    if not given or not set(given) <= set(known):
        raise ConfigurationError(f"tools are of {', '.join(known)}, not {quote(names)}")
    return tuple(each for each in known if each in given)


def offers(
    scoped: Scoped, sets: Sequence[ToolSet], *, read_only: bool
) -> dict[str, tuple[types.Tool, Tool]]:
    """Return the tools by name, each as the protocol describes it and as it is called."""
    schemas: Mapping[str, dict[str, Any]] = {}
    if "knowledge-graph" in sets:
        from locus_memory.integrations.mcp.graph_tools import SCHEMAS  # noqa: PLC0415

        schemas = SCHEMAS
    made = (each for name in sets for each in _tools(scoped, name, read_only=read_only))
    found = {each.spec.name: (_described(each, schemas.get(each.spec.name)), each) for each in made}
    if not read_only:
        return found
    writes = _ADDS | _ADDS_NODES | _DELETES
    return {name: pair for name, pair in found.items() if name not in writes}


def _tools(scoped: Scoped, name: ToolSet, *, read_only: bool) -> Iterator[Tool]:
    """Yield the tools of a set; what only they need is loaded here."""
    from locus_memory.tools import as_tool  # noqa: PLC0415

    functions: Sequence[Callable[..., Any] | Tool]
    if name == "documents":
        from locus_memory.agent.toolkit.documents_tool import documents_tool  # noqa: PLC0415

        functions = [documents_tool(scoped.index)]
    elif name == "resources":
        from locus_memory.agent.toolkit.resource_tools import resource_tools  # noqa: PLC0415

        functions = resource_tools(scoped.tree, write=not read_only)
    elif name == "knowledge-graph":
        from locus_memory.integrations.mcp.graph_tools import graph_functions  # noqa: PLC0415

        functions = graph_functions(scoped.graph)
    else:
        from locus_memory.integrations.mcp.memories import (  # noqa: PLC0415
            conversation_functions,
            memory_functions,
        )

        functions = (
            memory_functions(scoped.manager, scoped.store)
            if name == "memory"
            else conversation_functions(scoped.manager)
        )
    yield from map(as_tool, functions)


def _described(tool: Tool, output: dict[str, Any] | None) -> types.Tool:
    name = tool.spec.name
    deletes = name in _DELETES or name == "write_resource"
    parameters = dict(tool.spec.parameters)
    properties: dict[str, dict[str, Any]] = parameters.get("properties", {})
    parameters["properties"] = {each: _raised(told) for each, told in properties.items()}
    return types.Tool(
        name=name,
        title=name.replace("_", " ").capitalize(),
        description=tool.spec.description,
        input_schema={**parameters, "type": "object"},
        output_schema=output or _TEXT,
        annotations=types.ToolAnnotations(
            read_only_hint=not deletes and name not in _ADDS | _ADDS_NODES,
            destructive_hint=deletes,
            idempotent_hint=name != "undo_memory",
            open_world_hint=False,
        ),
    )


def _raised(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of an argument with its description beside `anyOf`, not inside."""
    options: list[dict[str, Any]] = schema.get("anyOf", [])
    said = [each["description"] for each in options if "description" in each]
    if not said:
        return schema
    bare = [{n: each for n, each in one.items() if n != "description"} for one in options]
    return {"description": said[0], **schema, "anyOf": bare}
