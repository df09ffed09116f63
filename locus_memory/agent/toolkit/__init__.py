"""Tools with which a model searches documents, and searches, keeps and drops a user's memories.

`memory_tool` changes memories, `search_memory` only reads them layer by layer, `search_documents`
reads an index of documents. The user is bound when a tool is made and is never an argument, so no
text of a model reaches another user's memories.

Read `scope.py` first, then `memory_tool.py`, `reflection.py` and `search_tool.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from locus_memory._internal.lazy import lazy_names

if TYPE_CHECKING:
    from locus_memory.agent.toolkit.documents_tool import documents_tool
    from locus_memory.agent.toolkit.memory_tool import memory_tool
    from locus_memory.agent.toolkit.search_tool import memory_tools
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "documents_tool": "documents_tool",
            "memory_tool": "memory_tool",
            "memory_tools": "search_tool",
        },
    )

__all__ = ["documents_tool", "memory_tool", "memory_tools"]
