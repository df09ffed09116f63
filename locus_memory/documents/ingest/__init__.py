"""Ingest: files become texts with a kind, and folders become documents of an index.

`ingest_path` reads and cuts, without a store. `PathAdding` is `DocumentIndex.add_path`: it reads
only what has changed, and one file that cannot be read never stops the others.

Read `files.py` first, then `formats.py`, `reader.py`, `reading.py` and `adding.py`.
"""
