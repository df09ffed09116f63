"""Embedders over embedders: batching, caching and retrying.

Each takes any embedder and is one. Nothing here knows a model.

Read `base.py` first.
"""
