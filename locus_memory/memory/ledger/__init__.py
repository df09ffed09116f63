"""The ledger: the current memories of a scope, and the history of each.

A change is planned purely (`revision.py`) and written as one batch with the versions it was
planned on. History and undo read what the ledger wrote.

Read `ledger.py` first, then `revision.py`.
"""
