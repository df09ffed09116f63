"""Extraction: the changes of memories that follow from new messages.

A thread is read (`thread.py`), the extractor gets a prompt (`prompt.py`), and its answer is parsed
leniently and validated (`answer.py`). Nothing here writes to the store: the ledger does.

Read `extractors.py` first, then `extraction.py`, which calls the other modules in order.
"""
