"""Ranking: from the candidates of two searches to one order; pure, without I/O or a store.

The query is parsed into words, names and dates, and each candidate gets a score: the weighted sum
of its evidence. Every rank can be explained.

Read `ranking.py` first, then `query.py`, `evidence.py` and `score.py`.
"""
