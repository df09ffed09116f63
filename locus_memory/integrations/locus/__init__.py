"""Adapters for the Locus SDK (`locus-sdk`): a checkpointer, a memory manager and a store.

```python
from locus.agent import Agent
from locus_memory import SlidingWindowManager
from locus_memory.integrations.locus import LocusCheckpointer, LocusMemoryManager

agent = Agent(
    model=...,
    checkpointer=LocusCheckpointer("sqlite:./agent.db"),
    memory_manager=LocusMemoryManager("sqlite:./agent.db"),
    conversation_manager=SlidingWindowManager(window_size=20),
)
```

Conversation managers work in its agent without an adapter. Read `checkpointer.py` first, then
`state.py`, which converts a state of the SDK to plain JSON; `memory_manager.py` and `store.py` are
thin.
"""

from __future__ import annotations

from locus_memory._internal.providers.drivers import require

require("locus", "locus", needed_by=__name__)

from locus_memory.integrations.locus.checkpointer import (  # noqa: E402 - the guard is first
    LocusCheckpointer,
    register,
)
from locus_memory.integrations.locus.memory_manager import LocusMemoryManager  # noqa: E402
from locus_memory.integrations.locus.store import LocusStore  # noqa: E402

__all__ = ["LocusCheckpointer", "LocusMemoryManager", "LocusStore", "register"]
