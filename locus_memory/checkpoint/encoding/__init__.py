"""From a state to the payload of its next record.

The engine drafts a record off the event loop where the state is large, as a delta against an
earlier one where that is smaller. `chain_cache.py` remembers the newest states of each thread, so
that a save reads nothing back.

Read `encode.py` first, then `levels.py` and `chain_cache.py`.
"""
