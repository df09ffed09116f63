"""Items as rows: their columns, their names, and all statements for them.

The store's verbs call `items.py`, which runs the statements of `queries.py`. The other modules
are pure: they turn items into columns and rows into items.

Read `naming.py` and `rows.py` first, then `queries.py`, then `items.py`.
"""
