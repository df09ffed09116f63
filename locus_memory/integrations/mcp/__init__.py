"""A server of the Model Context Protocol (`mcp`) that gives a model memories, on any database.

```python
from locus_memory.integrations.mcp import Caller, MemoryServer

async with MemoryServer("sqlite:./agent.db", caller=Caller("ada")) as memory:
    await memory.serve_stdio()
```

A tool or a resource belongs to one caller, who is bound by configuration or by a bearer token: no
argument of a model names one. Over 400 lines in all, since it has two sets of tools (ours, and the
nine of the reference memory server with the graph behind them), two transports and the tokens.

Read `callers.py` first: who calls. `server.py` answers the protocol's requests with the tools of
`offers.py`, which are those of `memories.py` and `graph_tools.py` and the agent's own. `graph.py`
keeps the knowledge graph; `http.py` serves over HTTP.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from locus_memory._internal.lazy import lazy_names
from locus_memory._internal.providers.drivers import require

require("mcp.server.lowlevel", "mcp", needed_by=__name__)

from locus_memory.integrations.mcp.callers import (  # noqa: E402 - the guard is first
    Caller,
    Callers,
    TokenCallers,
)
from locus_memory.integrations.mcp.http import HTTPOptions  # noqa: E402
from locus_memory.integrations.mcp.server import Limits, MemoryServer  # noqa: E402

if TYPE_CHECKING:
    from locus_memory.integrations.mcp.graph import GraphImport, KnowledgeGraph
else:
    # Most servers have no graph.
    __getattr__, __dir__ = lazy_names(__name__, {"GraphImport": "graph", "KnowledgeGraph": "graph"})

__all__ = [
    "Caller",
    "Callers",
    "GraphImport",
    "HTTPOptions",
    "KnowledgeGraph",
    "Limits",
    "MemoryServer",
    "TokenCallers",
]
