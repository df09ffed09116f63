"""Memory as a tree of texts named by `memory://` URIs, on any store.

An agent writes, reads at three levels of detail, lists, searches, ingests files and commits
sessions. Every operation is a value, and so is every answer and every failure.

Read `uri.py` and `operations.py` first, then `tree.py`.
"""
