"""Items in Redis: their encoding, their keys, and the scripts that read and write them.

The store's verbs on items and namespaces call these modules, and search reads its items through
them. Only `items.py` builds keys.

Read `items.py` first, then `spaces.py` for one namespace or many, then the Lua files beside this
folder. `former.py` reads what earlier versions wrote.
"""
