"""The commands on threads and checkpoints, from `threads` to `vacuum`.

Each command reads a checkpointer and decodes the states of frameworks to plain data.
`threads rm` and `vacuum` ask before they delete.

Read `checkpoints.py` first.
"""
