"""Recall: the memories that a message calls for.

`recall` finds them by search and orders them; `selection` tells which ones count, and `found` is
the form in which they are handed over. `as_of` does the same for the memories of an earlier moment,
and `warming` keeps a recall that was prepared after the turn before.

Read `selection.py` first, then `recall.py`.
"""
