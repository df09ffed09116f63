"""Adapter for py-key-value (`py-key-value-aio`): its store on any database, for FastMCP too.

```python
from fastmcp import FastMCP
from locus_memory.integrations.key_value import LocusKeyValue

server = FastMCP("notes", session_state_store=LocusKeyValue("sqlite:./agent.db"))
```

Read `store.py`: a `BaseStore` of theirs whose collections are namespaces of ours. FastMCP keeps
session state, events, cached responses and OAuth tokens in such a store. Nothing here imports it.
"""

from __future__ import annotations

from locus_memory._internal.providers.drivers import require

require("key_value.aio.stores.base", "py-key-value", needed_by=__name__)

from locus_memory.integrations.key_value.store import LocusKeyValue  # noqa: E402 - the guard is first

__all__ = ["LocusKeyValue"]
