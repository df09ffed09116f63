"""The consolidator: it keeps the memories of a scope small, true and in order.

A pass lets salience fall, merges episodes that say the same, moves unused facts to the history, and
erases what is older than its retention. It is never on the path of a run, one process does it at a
time, and a pass that ends anywhere is finished by the next one.

Read `consolidator.py` first, then `facts.py`, `episodes.py` and `pruning.py`; `schedule.py` and
`passes.py` decide when a pass begins. `rewriting/` merges facts with the help of a model.
"""
