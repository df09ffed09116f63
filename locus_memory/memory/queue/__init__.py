"""The queue of messages that wait for extraction, in the store: it outlives the process.

A job is written before the agent's answer returns. Workers of any process claim jobs under a
lease, those of one thread in order.

A turn is queued with its transcript in one write (`turns.py`). Conversations of the past are
ingested the same way.

Read `queue.py` first, then `pace.py` and `worker.py`.
"""
