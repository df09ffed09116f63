"""The table of the endpoints, below `/api/v1`, and the document that describes them."""

from __future__ import annotations

from functools import cache
from typing import Any, Final

from fastapi.openapi.utils import get_openapi

from locus_memory import __version__
from locus_memory.web.api.events import stream_events
from locus_memory.web.api.operation import Operation
from locus_memory.web.questions.documents import (
    add_document,
    delete_document,
    list_documents,
    search_documents,
)
from locus_memory.web.questions.editing import (
    edit_memory,
    forget_data,
    remember,
    retire_memory,
    trust_memory,
    undo_memory,
)
from locus_memory.web.questions.export import export_facts, export_thread
from locus_memory.web.questions.health import (
    get_health,
    get_thread_stats,
    list_events,
)
from locus_memory.web.questions.items import (
    clear_namespace,
    delete_item,
    get_item,
    list_items,
    list_namespaces,
    put_item,
    search_items,
)
from locus_memory.web.questions.layers import (
    add_override,
    consolidate,
    get_identity,
    ingest,
    list_episodes,
    list_transcript,
    remove_override,
    sync_now,
)
from locus_memory.web.questions.memories import (
    get_memory,
    list_memories,
    list_users,
    memory_history,
    search_memories,
)
from locus_memory.web.questions.planning import list_runs, plan_run
from locus_memory.web.questions.threads import (
    delete_thread,
    diff_checkpoints,
    fork_checkpoint,
    get_state,
    list_checkpoints,
    list_threads,
    prune_checkpoints,
)

__all__ = ["OPERATIONS", "openapi_document"]

OPERATIONS: Final = (
    Operation("GET", "/health", get_health),
    Operation("GET", "/events", list_events),
    Operation("GET", "/events/stream", stream_events),
    Operation("GET", "/store/namespaces", list_namespaces),
    Operation("GET", "/store/items", list_items),
    Operation("GET", "/store/item", get_item),
    Operation("PUT", "/store/item", put_item),
    Operation("DELETE", "/store/item", delete_item),
    Operation("POST", "/store/clear", clear_namespace),
    Operation("GET", "/store/search", search_items),
    Operation("GET", "/threads", list_threads),
    Operation("DELETE", "/threads", delete_thread),
    Operation("GET", "/threads/checkpoints", list_checkpoints),
    Operation("GET", "/threads/state", get_state),
    Operation("GET", "/threads/diff", diff_checkpoints),
    Operation("GET", "/threads/stats", get_thread_stats),
    Operation("POST", "/threads/fork", fork_checkpoint, 201),
    Operation("POST", "/threads/prune", prune_checkpoints),
    Operation("GET", "/memory/users", list_users),
    Operation("GET", "/memory/list", list_memories),
    Operation("GET", "/memory/search", search_memories),
    Operation("GET", "/memory/item", get_memory),
    Operation("PUT", "/memory/item", edit_memory),
    Operation("DELETE", "/memory/item", retire_memory),
    Operation("GET", "/memory/history", memory_history),
    Operation("POST", "/memory/remember", remember),
    Operation("POST", "/memory/trust", trust_memory),
    Operation("POST", "/memory/undo", undo_memory),
    Operation("POST", "/memory/forget", forget_data),
    Operation("GET", "/memory/identity", get_identity),
    Operation("POST", "/memory/identity", add_override, 201),
    Operation("DELETE", "/memory/identity", remove_override),
    Operation("GET", "/memory/episodes", list_episodes),
    Operation("GET", "/memory/transcript", list_transcript),
    Operation("GET", "/memory/saw", list_runs),
    Operation("GET", "/memory/plan", plan_run),
    Operation("POST", "/memory/ingest", ingest),
    Operation("POST", "/memory/consolidate", consolidate),
    Operation("POST", "/memory/sync", sync_now),
    Operation("GET", "/documents", list_documents),
    Operation("POST", "/documents", add_document),
    Operation("DELETE", "/documents", delete_document),
    Operation("GET", "/documents/search", search_documents),
    Operation("GET", "/export/thread", export_thread),
    Operation("GET", "/export/facts", export_facts),
)
"""The endpoints, except the document itself."""


@cache
def openapi_document() -> dict[str, Any]:
    """Return the OpenAPI document; it takes longer to make than anything else here."""
    document = get_openapi(
        title="locus-memory",
        version=__version__,
        description="Threads, memories, documents and items of one database.",
        routes=OPERATIONS,
    )
    document["security"] = [{}, {"token": []}]
    document["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    return document
