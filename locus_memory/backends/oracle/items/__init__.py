"""The items of the store: their names, their rows, and the calls of the database for the verbs.

Read `naming.py` and `rows.py` first, then `queries.py`, which has every statement of the store, and
`items.py`; `tokens.py` makes the tokens of filters, `namespaces.py` lists namespaces.
"""
