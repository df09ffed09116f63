"""The options that several commands share, and the parsing of their values.

A value of the command line becomes a checked value of the library, or a one-line error.
`Session` is one run of a command: its database and its output format.

Read `common.py` first, then `session.py`.
"""
