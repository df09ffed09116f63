"""Ranking: from the candidates of two searches to one order. Pure: no I/O, no store.

The query is read for words, names and dates, each candidate gets a score, two rankings are fused,
and near-duplicates are thinned out. Every rank can be explained.

Read `ranking.py` first, then `query.py`, `score.py` and `fusion.py`.
"""
