"""The commands on the memories of a user: list, remember, forget, identity, ingest, consolidate.

Each command opens the memory manager of a namespace and a user, and calls one of its verbs. What
they print of a memory is in `cli/printing/memories.py`.

Read `memories.py` first.
"""
