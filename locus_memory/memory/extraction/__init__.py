"""Extraction: what new messages make of memories, and the notes of their sessions.

The messages of a session are read once (`thread.py`, `source.py`), with one prompt (`prompt.py`),
whose answer is parsed leniently and validated (`distillate.py`). The ledger writes the facts, and
the queue the notes, together with the deletion of the messages from it.

Read `extractors.py` first, then `extraction.py`, which calls the other modules in order.
"""
