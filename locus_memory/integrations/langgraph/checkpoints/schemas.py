"""The classes that the schemas of a graph name: only these are built from stored data.

LangGraph passes them to a saver only if `LANGGRAPH_STRICT_MSGPACK` is set, with `with_allowlist`;
otherwise it imports any name in the stored bytes. But a graph calls the saver and knows its
schemas, so this module searches the callers for the graph. If the caller is not a graph, all graphs
of the process count.
"""

from __future__ import annotations

import dataclasses
import gc
import inspect
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import Enum
from functools import cache
from itertools import compress
from types import FrameType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    TypeAlias,
    TypeVar,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)
from weakref import WeakKeyDictionary

from pydantic import BaseModel
from typing_extensions import is_typeddict

if TYPE_CHECKING:
    # Not at run time: it takes longer to load than the rest of the saver.
    from langgraph.pregel import Pregel  # pyright: ignore[reportMissingTypeStubs] - it is typed

__all__ = ["ClassName", "Graph", "calling_graph", "classes_in", "classes_of", "living_classes"]

ClassName = tuple[str, str]
"""A class by its name in LangGraph's serializer: module and name."""

Graph: TypeAlias = "Pregel[Any, Any, Any, Any]"

_known: WeakKeyDictionary[Graph, Mapping[ClassName, type]] = WeakKeyDictionary()


def calling_graph() -> Graph | None:
    """Return the innermost graph among the callers; `None` if there is none."""
    kinds = _kinds()
    frame: FrameType | None = inspect.currentframe() if kinds else None
    while frame is not None:
        if frame.f_code.co_varnames[:1] == ("self",):
            caller = frame.f_locals.get("self")
            if isinstance(caller, kinds):
                return cast("Graph", caller)
        frame = frame.f_back
    return None


def _kinds() -> tuple[type, ...]:
    """Return the class of all graphs; nothing in a process that has not loaded it, and no graph."""
    loaded = sys.modules.get("langgraph.pregel")
    kind = getattr(loaded, "Pregel", None)
    return () if kind is None else (kind,)


def classes_of(graph: Graph) -> Mapping[ClassName, type]:
    """Return the classes that the schemas of a graph name; they are cached."""
    if graph not in _known:
        _known[graph] = classes_in(_schemas(graph))
    return _known[graph]


def living_classes() -> Callable[[], Mapping[ClassName, type]]:
    """Return a function that finds the classes of all existing graphs once, on first use."""

    @cache
    def look() -> Mapping[ClassName, type]:
        return classes_in(schema for graph in _living_graphs() for schema in _schemas(graph))

    return look


def _living_graphs() -> list[Graph]:
    """Return all graphs of the process, without a check of each object's ancestors."""
    kinds = [*_kinds()]
    for kind in kinds:
        kinds += kind.__subclasses__()
    # By id: a metaclass may make its types unhashable.
    wanted = set(map(id, kinds))
    objects = gc.get_objects()
    found = compress(objects, map(wanted.__contains__, map(id, map(type, objects))))
    return cast("list[Graph]", list(found))


def _schemas(graph: Graph) -> Iterator[Any]:
    for channel in graph.channels.values():
        yield getattr(channel, "ValueType", None)
        yield getattr(channel, "UpdateType", None)
    for node in graph.nodes.values():
        # If a module postpones annotations, the channels of its functions have them as text.
        function = getattr(node.bound, "func", None) or getattr(node.bound, "afunc", None)
        yield from _hints(function).values()
    builder = getattr(graph, "builder", None)
    if builder is None:
        return
    yield from (builder.state_schema, builder.input_schema, builder.output_schema)
    for node in builder.nodes.values():
        yield node.input_schema
    for branches in builder.branches.values():
        yield from (branch.input_schema for branch in branches.values())


def classes_in(annotations: Iterable[Any]) -> dict[ClassName, type]:
    """Return the classes of plain data in annotations, and in the fields of those classes.

    Classes of plain data are models of pydantic, dataclasses, enumerations, named tuples and
    secrets. A name that two classes share means neither.
    """
    found: dict[ClassName, type] = {}
    shared: set[ClassName] = set()
    # An annotation is kept, so that its id is not reused meanwhile.
    seen: dict[int, Any] = {}
    waiting = list(annotations)
    while waiting:
        annotation = waiting.pop()
        if id(annotation) in seen:
            continue
        seen[id(annotation)] = annotation
        waiting += _parts(annotation)
        if isinstance(annotation, type) and _is_data(annotation):
            name = annotation.__module__, annotation.__name__
            if found.setdefault(name, annotation) is not annotation:
                shared.add(name)
    return {name: kind for name, kind in found.items() if name not in shared}


def _is_data(kind: type) -> bool:
    if issubclass(kind, Enum):
        # An enumeration without members creates classes instead.
        return bool(kind.__members__)
    if issubclass(kind, _bases()):
        # A base would include every class derived from it.
        return kind not in _bases()
    return (
        dataclasses.is_dataclass(kind)
        or (issubclass(kind, tuple) and hasattr(kind, "_fields"))
        or hasattr(kind, "get_secret_value")
    )


def _bases() -> tuple[type, ...]:
    old = sys.modules.get("pydantic.v1")
    return (BaseModel,) if old is None else (BaseModel, old.BaseModel)


def _parts(annotation: Any) -> list[Any]:
    """Return the parts of an annotation."""
    origin = get_origin(annotation)
    if origin is Annotated:
        return [get_args(annotation)[0]]
    if origin is not None:
        return [origin, *get_args(annotation)]
    if isinstance(annotation, TypeVar):
        return [annotation.__bound__, *annotation.__constraints__]
    for name in ("__supertype__", "__value__"):
        # Of a `NewType`, and of a `type` statement.
        if hasattr(annotation, name):
            return [getattr(annotation, name)]
    if isinstance(annotation, type) and (is_typeddict(annotation) or _is_data(annotation)):
        return _fields(annotation)
    return []


def _fields(kind: type) -> list[Any]:
    """Return the annotations of a class's fields, as far as they can be resolved."""
    models: Mapping[str, Any] = getattr(kind, "model_fields", None) or {}
    resolved = [field.annotation for field in models.values()]
    return [*resolved, *_hints(kind, dict(vars(kind))).values()]


def _hints(annotated: Any, names: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return the annotations of a class or a function, as far as they can be resolved."""
    try:
        return get_type_hints(annotated, localns=names, include_extras=True)
    except Exception:  # noqa: BLE001 - a name in quotes may raise anything
        hints: Mapping[str, Any] = getattr(annotated, "__annotations__", {})
        return {name: hint for name, hint in hints.items() if not isinstance(hint, str)}
