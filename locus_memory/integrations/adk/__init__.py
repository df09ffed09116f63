"""Adapters for Google's Agent Development Kit (`google-adk`): sessions and memories.

```python
from google.adk.runners import Runner
from locus_memory.integrations.adk import LocusMemoryService, LocusSessionService

async with LocusSessionService("sqlite:./agent.db") as sessions:
    runner = Runner(agent=agent, app_name="my_app", session_service=sessions)
```

`register` gives the scheme `locus` to the command line of ADK. Read `sessions.py` first, then
`events.py`: an event as JSON. `memories.py` is apart from both. It has over 400 lines since states
of three scopes, the recovery of a damaged session and a memory service are ADK's wishes besides a
log of events.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from locus_memory._internal.lazy import lazy_names
from locus_memory._internal.providers.drivers import require

if TYPE_CHECKING:
    from locus_memory.integrations.adk.memories import LocusMemoryService
    from locus_memory.integrations.adk.scheme import register
    from locus_memory.integrations.adk.sessions import LocusSessionService
else:
    require("google.adk", "adk", needed_by=__name__)

    # ADK takes seconds to import, and a program may need only one of the services.
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "LocusMemoryService": "memories",
            "LocusSessionService": "sessions",
            "register": "scheme",
        },
    )

__all__ = ["LocusMemoryService", "LocusSessionService", "register"]
