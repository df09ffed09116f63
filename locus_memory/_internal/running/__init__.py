"""Calls that are repeated, and numbers about what this process does.

Read `retrying.py` for the first, and `cache_counts.py` and `live.py` for the second.
"""
