"""Ranking: from the candidates of two searches to one order; pure, without I/O or a store.

The query is parsed into words, names and dates, each candidate gets a score, two rankings are
fused, and near-duplicates are reduced. Every rank can be explained.

Read `ranking.py` first, then `query.py`, `score.py` and `fusion.py`.
"""
