"""Permanent erasure of memories, their vectors and history, and their source messages.

A plan finds everything before anything is erased, so that `dry_run` shows exactly the deletions
of the real run. An interrupted run is repeated until nothing is left.

Read `forget.py` first, then `plan.py`, which finds and erases, and `choice.py`, which decides about
each item.
"""
