"""The answers of the commands: tables for people, lines for a pipe, JSON documents for programs.

Every text from a database is made visible before a terminal sees it. Exit codes and error lines
are made in one place, `outcome.py`.

Read `output.py` first, then `tables.py` and `outcome.py`.
"""
