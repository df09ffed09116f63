"""Helpers that no user imports by name.

Each module does one thing that several parts of the library need, and knows nothing of stores,
checkpoints or memories. Any of them may change without notice.

There is no order to read them in: open the one that an import names. `providers/` is about the
classes behind a string.
"""
