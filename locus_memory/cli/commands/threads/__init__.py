"""The commands on threads and checkpoints, from `threads` to `vacuum`.

Each command reads a checkpointer and decodes the states of frameworks to plain data.
`threads rm` and `vacuum` ask before they delete.

`threads.py` holds `threads` and `threads rm`, `checkpoints.py` the commands on the checkpoints of
one thread. Read `checkpoints.py` first.
"""
