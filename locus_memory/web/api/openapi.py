"""The OpenAPI document, generated from the table of the endpoints and their models."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaMode, models_json_schema
from typing_extensions import override

from locus_memory import __version__
from locus_memory.web.api.operation import Operation
from locus_memory.web.models import ErrorAnswer

__all__ = ["openapi_document"]

_SCHEMAS: Final = "#/components/schemas/"
_INPUT: Final[JsonSchemaMode] = "validation"
_OUTPUT: Final[JsonSchemaMode] = "serialization"


def openapi_document(operations: Iterable[Operation], prefix: str) -> dict[str, Any]:
    """Return the document of the endpoints.

    Args:
        operations: The endpoints.
        prefix: The path that stands before each of theirs.
    """
    table = list(operations)
    refs, schemas = _schemas(table)
    paths: dict[str, Any] = {}
    for each in table:
        described = _operation(each, refs, schemas)
        paths.setdefault(prefix + each.path, {})[each.method.lower()] = described
    paths[prefix + "/events/stream"] = {"get": _STREAM}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "locus-memory",
            "version": __version__,
            "description": "Threads, memories, documents and items of one database.",
        },
        "security": [{}, {"token": []}],
        "paths": paths,
        "components": {
            "schemas": {name: schemas[name] for name in sorted(_used(schemas, paths))},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


class _Untitled(GenerateJsonSchema):
    """A generator that gives fields no titles: they would repeat the names."""

    @override
    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


_Refs = dict[tuple[type[BaseModel], JsonSchemaMode], str]


def _schemas(table: list[Operation]) -> tuple[_Refs, dict[str, Any]]:
    """Return the names and the definitions of the schemas of all models."""
    wanted: list[tuple[type[BaseModel], JsonSchemaMode]] = [(ErrorAnswer, _OUTPUT)]
    for each in table:
        wanted.append((each.asked, _INPUT))
        if each.answer is not None:
            wanted.append((each.answer, _OUTPUT))
    found, document = models_json_schema(
        list(dict.fromkeys(wanted)),
        ref_template=_SCHEMAS + "{model}",
        schema_generator=_Untitled,
    )
    refs: _Refs = {
        (model, mode): str(found[model, mode]["$ref"]).removeprefix(_SCHEMAS)
        for model, mode in dict.fromkeys(wanted)
    }
    return refs, document["$defs"]


def _used(schemas: dict[str, Any], roots: Any) -> set[str]:
    """Return the schemas that the paths lead to; a query needs no schema of its own."""
    used: set[str] = set()
    waiting = list(_references(roots))
    while waiting:
        name = waiting.pop()
        if name not in used:
            used.add(name)
            waiting += _references(schemas[name])
    return used


def _references(value: Any) -> Iterable[str]:
    if isinstance(value, dict):
        target = value.get("$ref")
        if isinstance(target, str):
            yield target.removeprefix(_SCHEMAS)
        for each in value.values():
            yield from _references(each)
    elif isinstance(value, list):
        for each in value:
            yield from _references(each)


def _operation(operation: Operation, refs: _Refs, schemas: dict[str, Any]) -> dict[str, Any]:
    described: dict[str, Any] = {
        "operationId": operation.name,
        "summary": operation.summary,
        "tags": [operation.path.split("/")[1]],
    }
    asked = refs[operation.asked, _INPUT]
    if operation.in_query:
        described["parameters"] = _parameters(schemas[asked])
    else:
        described["requestBody"] = {"required": True, "content": _json(asked)}
    if operation.is_conditional:
        described.setdefault("parameters", []).extend(_CONDITIONS)
    described["responses"] = _responses(operation, refs)
    return described


def _parameters(schema: dict[str, Any]) -> list[dict[str, Any]]:
    required = schema.get("required", [])
    return [
        {
            "name": name,
            "in": "query",
            "required": name in required,
            **({"description": each["description"]} if "description" in each else {}),
            "schema": {key: value for key, value in each.items() if key != "description"},
        }
        for name, each in schema.get("properties", {}).items()
    ]


def _responses(operation: Operation, refs: _Refs) -> dict[str, Any]:
    if operation.answer is None:
        content: dict[str, Any] = {"application/x-ndjson": {"schema": {"type": "string"}}}
    else:
        content = _json(refs[operation.answer, _OUTPUT])
    error = _json(refs[ErrorAnswer, _OUTPUT])
    responses = {str(operation.status): {"description": "Success", "content": content}}
    if operation.is_conditional:
        responses["412"] = {"description": "A conditional write lost", "content": error}
    return {**responses, "default": {"description": "An error", "content": error}}


def _json(name: str) -> dict[str, Any]:
    return {"application/json": {"schema": {"$ref": _SCHEMAS + name}}}


def _header(name: str, description: str) -> dict[str, Any]:
    return {
        "name": name,
        "in": "header",
        "required": False,
        "description": description,
        "schema": {"type": "string"},
    }


_CONDITIONS: Final = (
    _header("If-Match", "The ETag that the stored version must have, or *: there must be one."),
    _header("If-None-Match", "*: nothing may be stored yet."),
)

_STREAM: Final[dict[str, Any]] = {
    "operationId": "stream_events",
    "summary": "Follow the events of the process that serves the request.",
    "tags": ["events"],
    "parameters": [_header("Last-Event-ID", "The number of the last known event.")],
    "responses": {
        "200": {
            "description": "Server-sent events: their numbers, names and documents",
            "content": {"text/event-stream": {"schema": {"type": "string"}}},
        }
    },
}
