"""The commands on threads and checkpoints, from `threads` to `vacuum`.

Each reads a checkpointer, and decodes the states of frameworks so that they read like any other.
A command that deletes shows its plan and asks first.

Read `checkpoints.py` first.
"""
