"""The connection to Object Storage: threads, requests, retries and errors.

Read `connection.py` first, then `pool.py`, `driver.py` and `driver_errors.py`.
"""
