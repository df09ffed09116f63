"""Import of the sessions that ADK's own `SqliteSessionService` and `DatabaseSessionService` keep.

The services of ADK list no apps, so the tables are read by themselves. Read `sources.py` first:
sessions, their events and the states. `target.py` writes them, and `copying.py` is the import.
"""

from __future__ import annotations

__all__: list[str] = []
