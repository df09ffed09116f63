"""Items as documents of one index.

Read `mapping.py` and `documents.py` first, then `items.py`, which writes and reads single items,
and `paging.py`, which reads pages of a search; `scopes.py` holds the conditions of all searches.
"""
