"""Items in Redis: how they are encoded, where they live, and the scripts that read and write them.

The store's verbs on items and namespaces call these modules, and search finds its items with
them. A key is built in `items.py` alone.

Read `items.py` first, then `spaces.py` for one namespace or many, then `scripts.py` and the Lua
files beside this folder.
"""
