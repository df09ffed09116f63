"""The commands that keep a database as its owner has promised: keys, retention, deletion.

Read `rotate.py` first.
"""
