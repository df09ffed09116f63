"""The consolidator: it keeps the memories of a scope in order.

A pass lets salience fall, moves expired facts to the history, and erases what is older than its
retention. It merges and drops nothing. It is never on the path of a run, one process does it at a
time, and a pass that ends anywhere is finished by the next one.

Read `consolidator.py` first, then `steps.py` and `pruning.py`; `schedule.py` and
`passes.py` decide when a pass begins. `rewriting/` merges facts with the help of a model.
"""
