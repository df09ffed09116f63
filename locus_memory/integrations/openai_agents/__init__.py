"""Adapter for the OpenAI Agents SDK (`openai-agents`): a session on any database.

```python
from agents import Agent, Runner
from locus_memory.integrations.openai_agents import LocusSession

async with LocusSession("ada", "sqlite:./agent.db") as session:
    await Runner.run(Agent("Assistant"), "Hello", session=session)
```

Read `integrations/log.py` first: a log of items that many processes append to. `session.py` is the
SDK's view of it, `branches.py` and `usage.py` are the parts of a session that only the branches
need, and `turns.py` has their pure functions. It has over 400 lines since branches, usage and
compaction in one transaction are the SDK's wishes besides a session.
"""

from __future__ import annotations

from locus_memory._internal.providers.drivers import require

require("agents.memory", "openai-agents", needed_by=__name__)

from locus_memory.integrations.openai_agents.session import LocusSession  # noqa: E402 - the guard is first

__all__ = ["LocusSession"]
