"""Detection of secrets in texts that may be remembered.

A memory with a secret in it is refused before it is written, no matter which component proposed
it. Everything here is pure.

Read `detection.py` first; it calls `numbers.py` and `prose.py`.
"""
