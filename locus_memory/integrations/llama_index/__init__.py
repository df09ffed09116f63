"""Adapter for LlamaIndex: the messages of its `Memory` on any database.

```python
from llama_index.core.memory import Memory
from locus_memory.integrations.llama_index import LocusChatStore

chats = LocusChatStore("sqlite:./agent.db")
memory = Memory.from_defaults(session_id="ada", chat_store=chats)
```
"""

from __future__ import annotations

from locus_memory._internal.providers.drivers import require

require("llama_index.core", "llama-index", needed_by=__name__)

from locus_memory.integrations.llama_index.chat_store import LocusChatStore  # noqa: E402 - the guard is first

__all__ = ["LocusChatStore"]
