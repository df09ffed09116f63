"""What the backends of SQL databases share.

PostgreSQL and Oracle share the connections of an event loop and their opening, and SQLite with them
the verbs of checkpoints. Each of them has its own driver, statements and types, and fills in a few
methods here. Nothing in this folder imports a driver.

Read `pool.py` first, then `database.py`; `storage.py` stands alone.
"""
