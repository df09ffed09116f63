"""The way to a PostgreSQL database: its connections, its migrations, its errors.

`PostgreSQLPool` is shared by any number of tasks and event loops, and gives each loop a pool of
its own. Nothing here knows items or checkpoints.

Read `connection.py` first, then `pool.py`, `opening.py` and `standbys.py`; `address.py` reads a
URL, `driver_errors.py` translates the errors of asyncpg, and `driver.py` has its connections.
"""
