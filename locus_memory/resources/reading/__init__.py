"""Reading a tree: entries at their levels, listings and searches, and the view of memories.

Nothing is written here but levels that a model makes when they are first read. The memories of a
memory manager are shown as a folder of the tree.

Read `levels.py` first, then `listing.py`, `search.py` and `memories.py`.
"""
