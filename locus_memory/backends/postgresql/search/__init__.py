"""Search in PostgreSQL: filters as SQL, texts by BM25, vectors by pgvector.

Each module turns one part of a search into bound SQL. `texts.py` and `vectors.py` also decide
between an index and a comparison of all rows.

Read `filters.py` first, then `words.py` with `texts.py`, then `vectors.py`.
"""
