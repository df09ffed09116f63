"""Archives: everything of a database in one file that a person can read.

An archive is a zip file of JSON lines: one file for each namespace and each thread, and a manifest.
`docs/archive-format.md` describes it.

Read `format.py` first, then `lines.py`, `writing.py` and `reading.py`.
"""
