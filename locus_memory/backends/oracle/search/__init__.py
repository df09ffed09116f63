"""Searches: filters, texts and vectors.

Read `filters.py` and `hits.py` first, then `texts.py` and `vectors.py`.
"""
