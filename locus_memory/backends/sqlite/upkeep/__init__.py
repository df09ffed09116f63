"""The upkeep of a SQLite file: advice, problems, backups, and the search for deleted words.

Each module answers one question about the file as a whole, or copies it. None is needed to read or
to write.

Read `problems.py` and `backups.py` first.
"""
