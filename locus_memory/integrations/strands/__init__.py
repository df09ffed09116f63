"""Adapters for Strands (`strands-agents`): sessions, storage and memories on any database.

```python
from strands import Agent
from strands.session import RepositorySessionManager
from locus_memory.integrations.strands import LocusSessionRepository

sessions = LocusSessionRepository("sqlite:./agent.db")
agent = Agent(session_manager=RepositorySessionManager("ada", sessions))
```

Read `sessions.py` first: a session message by message. `storage.py` keeps bytes under keys, for the
framework's snapshots and offloaded results. `memories.py` is a store of its memory manager. It has
over 400 lines since these are three contracts of the framework, one of them blocking.
"""

from __future__ import annotations

from locus_memory._internal.providers.drivers import require

require("strands.session", "strands", needed_by=__name__)

from locus_memory.integrations.strands.memories import LocusMemoryStore  # noqa: E402 - the guard is first
from locus_memory.integrations.strands.sessions import LocusSessionRepository  # noqa: E402
from locus_memory.integrations.strands.storage import LocusStorage  # noqa: E402

__all__ = ["LocusMemoryStore", "LocusSessionRepository", "LocusStorage"]
