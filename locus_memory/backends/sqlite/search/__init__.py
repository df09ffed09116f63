"""Search in SQLite: filters as SQL, texts by FTS5, vectors by exact comparison.

Each module turns one part of a search into bound SQL or into one multiplication of matrices.
`candidates.py` runs both searches of a hybrid query in one transaction. `posted` ranks
the words of large files.

Read `filters.py` first, then `texts.py`, `vectors.py` and `candidates.py`.
"""
