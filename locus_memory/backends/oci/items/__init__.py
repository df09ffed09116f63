"""The items of the store: their format as objects, their reads, writes and lists.

Read `stored.py` first, then `order.py`, `items.py`, `listing.py` and `namespaces.py`.
"""
