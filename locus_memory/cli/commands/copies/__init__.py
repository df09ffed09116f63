"""The commands that copy a whole database: to another one, to an archive, or to a backup.

Read `migrate.py` first.
"""
