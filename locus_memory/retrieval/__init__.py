"""Retrieval: search by words and by meaning at once, on any store.

`HybridSearch` fetches candidates from a store and ranks them; the ranking is pure. Embedders and
rerankers are models that users bring, behind one protocol each.

Read `hybrid.py` first, then `candidates.py` and `ranking/`; `embedders/` and `rerankers/` hold the
models.
"""
