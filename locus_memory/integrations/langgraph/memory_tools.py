"""Tools for memories with the names, arguments and answers of `langmem`, which is not needed.

An agent that used `langmem.create_manage_memory_tool` and `langmem.create_search_memory_tool`
needs only another import.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Literal, Optional, cast
from uuid import UUID, uuid4

import orjson
from langchain_core.tools import BaseTool, StructuredTool
from langgraph.config import get_config, get_store
from langgraph.store.base import BaseStore
from pydantic import BaseModel, create_model
from typing_extensions import override

from locus_memory._internal.quoting import quote
from locus_memory.backends.base import Backend
from locus_memory.errors import ConfigurationError, InvalidArgumentError
from locus_memory.integrations.langgraph.store import LocusStore
from locus_memory.store.base import BaseStore as OurStore

__all__ = ["create_manage_memory_tool", "create_search_memory_tool"]

Where = BaseStore | OurStore | Backend | None
Action = Literal["create", "update", "delete"]

_ACTIONS: Final = ("create", "update", "delete")
_WHEN: Final = (
    "Call this when the user states a lasting preference, asks you to remember or to forget "
    "something, or when a MEMORY that you have seen is wrong or out of date."
)


def create_manage_memory_tool(
    namespace: tuple[str, ...] | str,
    *,
    instructions: str = _WHEN,
    schema: Any = str,
    actions_permitted: Sequence[Action] | None = _ACTIONS,
    store: Where = None,
    name: str = "manage_memory",
) -> BaseTool:
    """Return a tool with which a model creates, updates and deletes memories.

    Its arguments are `content`, `action` and `id`, and it answers with the id of the memory.

    Args:
        namespace: The namespace of the memories. A label in braces, such as `{user_id}`, is taken
            from the `configurable` of the run.
        instructions: When to call the tool, for the model.
        schema: The type of a memory: `str`, or a model of pydantic.
        actions_permitted: The actions that the model may take.
        store: A store of LangGraph, or a store or backend of the library; `None`: the store of the
            graph.
        name: The name of the tool.

    Raises:
        InvalidArgumentError: `actions_permitted` is empty, or names an unknown action.
    """
    actions = _checked(actions_permitted)
    first = "create" if "create" in actions else actions[0]
    fields: Any = {
        "content": (Optional[schema], None),  # noqa: UP045 - a schema may be anything
        "action": (Literal[actions], first),
        "id": (UUID | None, None),
    }
    place = _Place(namespace, store)

    def manage(content: Any = None, action: str = first, id: UUID | None = None) -> str:  # noqa: A002 - the tool's argument
        key, answer = _planned(actions, action, id)
        if action == "delete":
            place.store().delete(place.labels(), key)
        else:
            place.store().put(place.labels(), key, {"content": _plain(content)})
        return answer

    async def amanage(content: Any = None, action: str = first, id: UUID | None = None) -> str:  # noqa: A002 - as above
        key, answer = _planned(actions, action, id)
        if action == "delete":
            await place.store().adelete(place.labels(), key)
        else:
            await place.store().aput(place.labels(), key, {"content": _plain(content)})
        return answer

    return _Tool.from_function(
        manage,
        amanage,
        name=name,
        description=f"{_listed(actions)} a memory that persists across conversations.\n"
        "To update or delete a MEMORY, pass its id; to create one, leave the id out.\n"
        f"{instructions}",
        args_schema=create_model(name, **fields),
    )


def create_search_memory_tool(
    namespace: tuple[str, ...] | str,
    *,
    instructions: str = "",
    store: Where = None,
    response_format: Literal["content", "content_and_artifact"] = "content",
    name: str = "search_memory",
) -> BaseTool:
    """Return a tool with which a model searches memories.

    Its arguments are `query`, `limit`, `offset` and `filter`, and it answers with a JSON list of
    the found items.

    Args:
        namespace: As for `create_manage_memory_tool`.
        instructions: More for the model on when to call the tool.
        store: As for `create_manage_memory_tool`.
        response_format: With `content_and_artifact`, the message of the tool has the items as its
            artifact.
        name: The name of the tool.
    """
    fields: Any = {
        "query": (str, ...),
        "limit": (int, 10),
        "offset": (int, 0),
        "filter": (dict[str, Any] | None, None),
    }
    place = _Place(namespace, store)

    def told(items: Sequence[Any]) -> Any:
        text = orjson.dumps([item.dict() for item in items]).decode()
        return (text, items) if response_format == "content_and_artifact" else text

    def search(query: str, limit: int = 10, offset: int = 0, filter: Any = None) -> Any:  # noqa: A002 - the tool's argument
        return told(
            place.store().search(
                place.labels(), query=query, filter=filter, limit=limit, offset=offset
            )
        )

    async def asearch(query: str, limit: int = 10, offset: int = 0, filter: Any = None) -> Any:  # noqa: A002 - as above
        return told(
            await place.store().asearch(
                place.labels(), query=query, filter=filter, limit=limit, offset=offset
            )
        )

    return StructuredTool.from_function(
        search,
        asearch,
        name=name,
        description=f"Search your memories of earlier conversations. {instructions}".strip(),
        response_format=response_format,
        args_schema=create_model(name, **fields),
    )


class _Tool(StructuredTool):
    """A tool whose schema says that no argument is required: some models refuse one without it."""

    @property
    @override
    def tool_call_schema(self) -> Any:
        schema: Any = super().tool_call_schema
        schema.model_config["json_schema_extra"] = _with_required
        return schema


class _Place:
    """The store and the namespace of a tool, of which a run fills in the labels in braces."""

    def __init__(self, namespace: tuple[str, ...] | str, store: Where) -> None:
        self._labels = namespace if isinstance(namespace, tuple) else (namespace,)
        given = store is None or isinstance(store, BaseStore)
        self._store = store if given else LocusStore(cast("Any", store))

    def store(self) -> BaseStore:
        """Return the store.

        Raises:
            ConfigurationError: None was given, and no graph with a store runs.
        """
        try:
            return get_store() if self._store is None else cast("BaseStore", self._store)
        except (RuntimeError, KeyError) as error:
            raise ConfigurationError(
                "there is no store: compile the graph with one, or pass store= to the tool"
            ) from error

    def labels(self) -> tuple[str, ...]:
        """Return the namespace of the run.

        Raises:
            ConfigurationError: The run does not have the value of a label.
        """
        named = {label: label.strip("{}") for label in self._labels if label.startswith("{")}
        if not named:
            return self._labels
        try:
            values: Any = get_config().get("configurable", {})
        except RuntimeError:
            values = {}
        missing = [key for key in named.values() if key not in values]
        if missing:
            raise ConfigurationError(
                f"the namespace of the tool needs {quote(missing[0])} in the 'configurable' of the "
                "run's config"
            )
        return tuple(values[named[label]] if label in named else label for label in self._labels)


def _checked(actions: object) -> tuple[str, ...]:
    known = tuple(actions) if isinstance(actions, list | tuple) else ()
    if not known or not set(known) <= set(_ACTIONS):
        raise InvalidArgumentError(
            f"actions_permitted is a list of at least one of {_ACTIONS}, not {quote(actions)}"
        )
    return known


def _planned(actions: Sequence[str], action: str, memory_id: UUID | None) -> tuple[str, str]:
    """Return the key of a memory, and the answer of the tool.

    Raises:
        InvalidArgumentError: The action is not permitted, or does not fit the id.
    """
    if action not in actions:
        raise InvalidArgumentError(f"action is one of {tuple(actions)}, not {quote(action)}")
    if action == "create":
        if memory_id is not None:
            raise InvalidArgumentError("a new MEMORY gets its id here: call again without an id")
        memory_id = uuid4()
    elif memory_id is None:
        raise InvalidArgumentError(f"to {action} a MEMORY, call again with its id")
    return str(memory_id), f"{'Delete' if action == 'delete' else action}d memory {memory_id}"


def _plain(content: Any) -> Any:
    return content.model_dump(mode="json") if isinstance(content, BaseModel) else content


def _listed(actions: Sequence[str]) -> str:
    *others, last = actions
    return (f"{', '.join(others)} or {last}" if others else last).capitalize()


def _with_required(schema: dict[str, Any]) -> None:
    schema.setdefault("required", [])
