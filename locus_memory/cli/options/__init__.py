"""The options that several commands share, and how their values are read.

A value of the command line becomes a checked value of the library, or one line that says why not.
`Session` is one run of a command: its database and its way to answer.

Read `common.py` first, then `session.py` and `names.py`.
"""
