"""Import of threads that LangGraph's own SQLite and PostgreSQL savers keep.

The tables are read by themselves, so the packages of those savers are not needed, and no class that
a stored value names is built: its bytes are copied. Read `threads.py` first.
"""

from __future__ import annotations

__all__: list[str] = []
