"""The gate and the planner: whether a run is shown memories, which ones, and where.

The gate reads a message and names at most one section of memory, or none; the planner adds what
always holds, fills the section within its budget, and renders one block. A message that needs no
memory costs no tokens.

Read `gate.py` and `gate_tables.py` first, then `planner.py`, `sections.py` and `cache.py`.
"""
