"""Search in SQLite: filters as SQL, texts by FTS5, vectors by exact comparison or by codes.

Each module turns one part of a search into bound SQL or into one multiplication of matrices.
A cache is of a revision of the file, and a transaction that is older begins again.

Read `filters.py` and `texts.py` first, then `caches.py`; `postings.py` and `ranking.py` rank the
words of large files, `vectors.py` and `codes.py` vectors.
"""
