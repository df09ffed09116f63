"""Adapter for CrewAI: the records of its `Memory` on any database.

```python
from crewai.memory.unified_memory import Memory
from locus_memory.integrations.crewai import LocusStorage

memory = Memory(storage=LocusStorage("sqlite:./agent.db"))
```
"""

from __future__ import annotations

from locus_memory._internal.providers.drivers import require

require("crewai", "crewai", needed_by=__name__)

from locus_memory.integrations.crewai.storage import LocusStorage  # noqa: E402 - the guard is first

__all__ = ["LocusStorage"]
