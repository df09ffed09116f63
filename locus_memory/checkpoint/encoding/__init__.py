"""Encoding: from a state to the payload of its next record.

The engine drafts the record of a large state off the event loop. A record is a delta against an
earlier one if that is smaller. `chain_cache.py` caches the newest states of each thread, so that a
save reads nothing back.

Read `encode.py` first: its `draft` decides between a full record and a delta. Then read `levels.py`
and `chain_cache.py`.
"""
