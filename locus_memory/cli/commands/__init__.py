"""The commands: one file a command, or a group of commands on one thing.

A command reads its options, calls the library's public names in a `Session`, and prints a table,
lines for a pipe, or one JSON document. `app.py`, one folder up, puts them together.

Read `items.py` first: it is the plainest group.
"""
