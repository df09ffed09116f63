"""The output of the commands: tables on a terminal, lines on a pipe, JSON for programs.

Control characters in text from a database are escaped before a terminal sees them. `outcome.py`
defines the exit codes and the error lines.

Read `output.py` first, then `tables.py` and `outcome.py`.
"""
