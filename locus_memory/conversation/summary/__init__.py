"""The rolling summary: old messages as one summary, the latest ones word for word.

The manager decides when to summarise, by the digest of the thread (`thread.py`), and a
`summarize_fn` of the caller writes the text. A summary can be kept in a store, so that a restart
asks for none of them again.

Read `manager.py` first, then `thread.py`.
"""
