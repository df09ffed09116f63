"""Extraction: from messages to the changes of memories.

A thread is read (`thread.py`), the extractor is asked with a prompt (`prompt.py`), and its answer
is read leniently but validated (`answer.py`). Nothing here writes: a ledger does.

Read `extractors.py` first, then `extraction.py`, which calls the other modules in order.
"""
