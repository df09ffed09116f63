"""Adapters for frameworks, one folder each; only the folder imports its framework.

Read `owned.py`, `reading.py` and `writing.py` first, which all of them use, then the folder.
"""

from __future__ import annotations

__all__: list[str] = []
