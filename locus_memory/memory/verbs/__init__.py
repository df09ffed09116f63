"""The verbs of a memory manager for people and tools: one memory at a time, by id or by wish.

`single.py` reads and changes single memories with their history, `recalling.py` finds them,
`identity.py` is the door for what a person fixes, `tending.py` consolidates, and `sessions.py`
takes in conversations and tells their notes. A manager inherits them; they work on its scope and
on the parts that `scoped.py` makes.

Read `single.py` first.
"""
