"""Adapters for LangGraph (`langgraph`): a checkpointer and a store for its graphs.

```python
from locus_memory.integrations.langgraph import LocusSaver, LocusStore

async with LocusSaver("sqlite:./agent.db") as saver, LocusStore("sqlite:./agent.db") as store:
    graph = builder.compile(checkpointer=saver, store=store)
    await graph.ainvoke(state, {"configurable": {"thread_id": "ada"}})
```

Both accept a provider string, a backend, or a checkpointer or store of the library, and work in
`with` as well. `LocusSaver` is a `BaseCheckpointSaver` and `LocusStore` is a `BaseStore`, so a
program that used LangGraph's own needs no other change.
"""

from __future__ import annotations

from locus_memory._internal.providers.drivers import require

require("langgraph.checkpoint.base", "langgraph", needed_by=__name__)
require("langgraph.store.base", "langgraph", needed_by=__name__)

from locus_memory.integrations.langgraph.saver import LocusSaver  # noqa: E402 - the guard is first
from locus_memory.integrations.langgraph.store import LocusStore  # noqa: E402 - the same

__all__ = ["LocusSaver", "LocusStore"]
