"""Adapters for LangGraph (`langgraph`): a memory, a checkpointer, a store and retrievers.

```python
from locus_memory.integrations.langgraph import LocusSaver, LocusStore

async with LocusSaver("sqlite:./agent.db") as saver, LocusStore("sqlite:./agent.db") as store:
    graph = builder.compile(checkpointer=saver, store=store)
    await graph.ainvoke(state, {"configurable": {"thread_id": "ada"}})
```

Both accept a provider string, a backend, or a checkpointer or store of the library, and work in
`with` as well. `LocusSaver` is a `BaseCheckpointSaver` and `LocusStore` is a `BaseStore`, so a
program that used LangGraph's own needs no other change. `MemoryMiddleware` gives an agent of
`create_agent` a memory manager, and `GraphMemory` a graph made by hand. `LocusRetriever` and
`LocusSearchRetriever` are retrievers of LangChain over documents and items, and the two tools are
those of `langmem`.

Read `graph_memory.py`, `saver.py`, `store.py` and `retriever.py`; `items/` holds the parts of the
store, and `importing/` copies the threads of other savers. It has over 400 lines since it is a
memory, a checkpointer, a store, retrievers and tools.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from locus_memory._internal.lazy import lazy_names
from locus_memory._internal.providers.drivers import require

if TYPE_CHECKING:
    from locus_memory.integrations.langgraph.graph_memory import GraphMemory
    from locus_memory.integrations.langgraph.memory_tools import (
        create_manage_memory_tool,
        create_search_memory_tool,
    )
    from locus_memory.integrations.langgraph.middleware import MemoryMiddleware
    from locus_memory.integrations.langgraph.retriever import LocusRetriever, LocusSearchRetriever
    from locus_memory.integrations.langgraph.saver import LocusSaver
    from locus_memory.integrations.langgraph.store import LocusStore
else:
    _get, __dir__ = lazy_names(
        __name__,
        {
            "GraphMemory": "graph_memory",
            "LocusRetriever": "retriever",
            "LocusSaver": "saver",
            "LocusSearchRetriever": "retriever",
            "LocusStore": "store",
            "MemoryMiddleware": "middleware",
            "create_manage_memory_tool": "memory_tools",
            "create_search_memory_tool": "memory_tools",
        },
    )

    # The modules beside this one that need no LangGraph can be imported without it.
    def __getattr__(name: str) -> Any:
        if name in __all__:
            require("langgraph.checkpoint.base", "langgraph", needed_by=__name__)
            require("langgraph.store.base", "langgraph", needed_by=__name__)
        if name == "MemoryMiddleware":
            require("langchain.agents.middleware", "langchain", needed_by=name)
        return _get(name)


__all__ = [
    "GraphMemory",
    "LocusRetriever",
    "LocusSaver",
    "LocusSearchRetriever",
    "LocusStore",
    "MemoryMiddleware",
    "create_manage_memory_tool",
    "create_search_memory_tool",
]
