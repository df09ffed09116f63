"""mem0: its verbs over a memory manager, and the import of its memories.

```python
from locus_memory.integrations.mem0 import Memory

memory = Memory("sqlite:./agent.db")
memory.add("I live in Vienna.", user_id="ada")
memory.search("Where does she live?", filters={"user_id": "ada"})
```

The package `mem0ai` is not needed. Read `memory.py` for the verbs, and `inferring.py` for what an
extractor makes of messages; `slots.py` finds memories by their ids, and `filters.py`, `shapes.py`
and `configuration.py` read and write what mem0 does. Of an import, read `history.py` first: the
rows of the database as changes of memories. `export.py` is the JSON of `get_all`, and
`importing.py` writes both as memories, and those that `osaurus.py` reads.
"""

from __future__ import annotations

from locus_memory.integrations.mem0.memory import AsyncMemory, Memory

__all__ = ["AsyncMemory", "Memory"]
