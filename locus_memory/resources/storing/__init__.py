"""The tree on a store: where everything is, and writes that are all or nothing.

An entry is one item, with its text, its metadata and its levels; its chunks, which searches find,
and its past versions are beside it, in the same batch. A folder is an item as well, so that no name
is both: the store's condition on its version decides between two writers.

Read `places.py` first, then `nodes.py`, `plans.py` and `writing.py`.
"""
