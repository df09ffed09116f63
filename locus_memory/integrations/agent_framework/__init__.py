"""Adapters for the Microsoft Agent Framework: a history and a memory on any database.

```python
from agent_framework import Agent
from locus_memory.integrations.agent_framework import LocusContextProvider, LocusHistoryProvider

where = "sqlite:./agent.db"
providers = [LocusHistoryProvider(where), LocusContextProvider(where, user_id="ada")]
agent = Agent(client=client, context_providers=providers)
```

`history.py` keeps the messages of a session, and `context.py` gives an agent a memory manager.
"""

from __future__ import annotations

from locus_memory._internal.providers.drivers import require

require("agent_framework", "agent-framework", needed_by=__name__)

from locus_memory.integrations.agent_framework.context import LocusContextProvider  # noqa: E402 - the guard is first
from locus_memory.integrations.agent_framework.history import LocusHistoryProvider  # noqa: E402

__all__ = ["LocusContextProvider", "LocusHistoryProvider"]
