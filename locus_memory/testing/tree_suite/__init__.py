"""The tests of `MemoryTreeConformance`, one file per part.

Read `base.py` first, then `entries.py`, `model.py` and `races.py`.
"""
