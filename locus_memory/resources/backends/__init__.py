"""Memory backends: kinds of stores of `memory://` resources, behind one registry.

An open store is a handle with a count of its users, and the last one closes it. `local`, the
built-in backend, is a tree over any store of this library.

Read `base.py` first, then `handle.py`, `registry.py` and `local.py`.
"""
