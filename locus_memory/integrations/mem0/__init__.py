"""Import of the memories of mem0: its history database, and what its `get_all` returns.

The package `mem0ai` is not needed. Read `history.py` first: the rows of the database as changes of
memories. `export.py` is the JSON of `get_all`, and `importing.py` writes both as memories.
"""

from __future__ import annotations

__all__: list[str] = []
