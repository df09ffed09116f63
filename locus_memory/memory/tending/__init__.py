"""The consolidator: it keeps the memories of a scope in order.

A pass moves expired facts to the history, and erases what is older than its retention. It is never
on the path of a run, one process does it at a time, and a pass that ends anywhere is finished by
the next one.

Read `verbs/tending.py` first, then `passes.py`. A model condenses notes in `condensing.py`, and
tidies facts in `facts.py`.
"""
