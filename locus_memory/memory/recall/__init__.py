"""Recall: the memories that a message calls for.

`recall` finds them by search and orders them; `selection` tells which ones count. `as_of` does the
same for the memories of an earlier moment.

Read `selection.py` first, then `recall.py`.
"""
