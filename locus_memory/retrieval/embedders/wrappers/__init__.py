"""Wrappers of embedders: batching, caching and retrying.

Each wraps any embedder and is an embedder itself. No wrapper depends on a model.

Read `base.py` first.
"""
