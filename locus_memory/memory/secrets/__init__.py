"""Telling a secret from a text that may be remembered.

A memory with a secret in it is refused before it is written, whoever proposed it. Everything here
is pure.

Read `detection.py` first; it asks `numbers.py` and `prose.py`.
"""
