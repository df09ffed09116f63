"""The way to an Oracle Database: its connections, its tables, its errors.

`OraclePool` is shared by any number of tasks and event loops, and gives each loop connections of
its own. Nothing here knows items or checkpoints.

Read `connection.py` first, then `pool.py` and `opening.py`; `address.py` parses the place,
`driver_errors.py` translates the errors of oracledb, and `driver.py` gives it types.
"""
