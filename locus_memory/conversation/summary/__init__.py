"""The rolling summary: old messages as one summary, the latest ones word for word.

The manager decides when to summarise, by the digest of the thread (`thread.py`), and the caller's
`summarize_fn` writes the text. A summary can be kept in a store, so that it is not computed again
after a restart.

Read `manager.py` first, then `thread.py`.
"""
