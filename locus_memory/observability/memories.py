"""The calls of memory managers, as memory operations of generative AI."""

from __future__ import annotations

from typing import Any, Final

from typing_extensions import override

from locus_memory.observability.conventions import (
    GEN_AI_OPERATION,
    MEMORY_COUNT,
    MEMORY_QUERY,
    MEMORY_RECORD,
    MEMORY_STORE,
    RECORD_IDS,
)
from locus_memory.observability.recording import Attributes, Describe

__all__ = ["EXTRACTION_VERBS", "MEMORY_OPERATIONS", "ExtractionVerb", "MemoryVerb"]

MEMORY_OPERATIONS: Final = {
    **dict.fromkeys(
        (
            *("on_session_start", "prefetch", "retrieve", "plan", "search", "search_memories"),
            *("search_episodes", "search_transcript"),
        ),
        "search_memory",
    ),
    **dict.fromkeys(
        (
            *("save", "remember", "import_facts", "import_history", "undo", "add", "ingest"),
            *("consolidate", "consolidate_facts"),
        ),
        "upsert_memory",
    ),
    **dict.fromkeys(("update", "feedback", "trust"), "update_memory"),
    **dict.fromkeys(("delete", "forget"), "delete_memory"),
}
"""The operation of each verb of a memory manager.

`upsert_memory` is the convention's name for a call that may create, update or merge records without
the caller's choice.
"""

EXTRACTION_VERBS: Final = ("distilled",)
"""The methods of `Extraction` that call an extractor."""

_MOST_IDS: Final = 50


class MemoryVerb(Describe):
    """Describes the calls of one verb of a memory manager.

    Args:
        name: The verb.
        query_text: Whether spans have the text of a query.
    """

    kind = "memory"
    """It is that of all managers: some verbs call another one, or a scoped manager."""

    def __init__(self, name: str, *, query_text: bool) -> None:
        self._verb = name
        self._operation = MEMORY_OPERATIONS[name]
        self._shared = {GEN_AI_OPERATION: self._operation}
        self._has_query = query_text and self._operation == "search_memory"
        self._has_id = name in {"update", "delete"}

    @override
    def begin(
        self, owner: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[str, Attributes, Attributes]:
        """Return the name of the operation, and the attributes that name the memories."""
        own: dict[str, Any] = {}
        namespace: Any = getattr(owner, "namespace", None)
        if isinstance(namespace, tuple):
            own[MEMORY_STORE] = "/".join(map(str, namespace))
        if self._has_query:
            given = (kwargs.get("query"), *args)
            query = next((each for each in given if isinstance(each, str)), None)
            if query:
                own[MEMORY_QUERY] = query
        if self._has_id:
            name = args[0] if args else kwargs.get("memory_id")
            own |= {MEMORY_RECORD: name} if isinstance(name, str) else {}
        return self._operation, self._shared, own

    @override
    def end(self, result: Any) -> Attributes:
        """Return the ids and the number of the records in a result."""
        if isinstance(result, bool):
            return {MEMORY_COUNT: int(result)}
        if isinstance(result, int) and self._operation == "delete_memory":
            return {MEMORY_COUNT: result}
        if isinstance(result, list):
            return _of_records(result)
        if self._verb == "remember" and isinstance(result, str):
            return {MEMORY_COUNT: 1, MEMORY_RECORD: result}
        return _of_records([result]) if _id_of(result) is not None else {}


class ExtractionVerb(Describe):
    """Describes the calls of an extractor: the operation `extract_memory`."""

    kind = "extraction"
    _OPERATION: Final = "extract_memory"

    @override
    def begin(
        self, owner: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[str, Attributes, Attributes]:
        """Return the name of the operation, and the scope of the memories."""
        del owner
        scope: Any = args[0] if args else kwargs.get("scope")
        namespace: Any = getattr(scope, "namespace", ())
        own = {MEMORY_STORE: "/".join(namespace)} if namespace else {}
        return self._OPERATION, {GEN_AI_OPERATION: self._OPERATION}, own

    @override
    def end(self, result: Any) -> Attributes:
        """Return the number of changes that the extractor made."""
        edits: Any = getattr(result, "edits", result)
        return {MEMORY_COUNT: len(edits)} if isinstance(edits, list) else {}


def _of_records(found: list[Any]) -> Attributes:
    attributes: dict[str, Any] = {MEMORY_COUNT: len(found)}
    ids = [name for each in found[:_MOST_IDS] if (name := _id_of(each)) is not None]
    if len(found) == 1 and ids:
        attributes[MEMORY_RECORD] = ids[0]
    elif ids:
        attributes[RECORD_IDS] = ids
    return attributes


def _id_of(record: Any) -> str | None:
    """Return the id of a memory, of a hit, or of a pair of a memory and its score."""
    found: Any = record[0] if isinstance(record, tuple) and record else record
    name: Any = getattr(found, "id", None)
    return name if isinstance(name, str) else None
