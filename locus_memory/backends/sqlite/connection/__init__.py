"""The way to a SQLite file: the threads that use it, how it is opened, its errors.

`SQLiteDatabase` is shared by any number of tasks and event loops. One thread writes and a few
read, so that the event loop never waits for the disk.

Read `connection.py` first, then `pool.py` and `opening.py`; `driver_errors.py` translates the
errors of `sqlite3`.
"""
