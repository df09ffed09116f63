"""Work that is repeated or has one owner, and numbers about what this process does.

Read `retrying.py`, `schedule.py`, `background.py` and `lease.py` for the first, and
`cache_counts.py` and `live.py` for the second.
"""
