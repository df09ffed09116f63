"""The way to a Redis server, cluster or watched primary: addresses, connections, errors.

`RedisConnection` is shared by any number of tasks and event loops, and gives each loop a link of
its own over redis-py's pool or its client of a cluster. Nothing here knows items or checkpoints.

Read `connection.py` first, then `link.py` and `cluster.py`; `features.py` says what a server can
do, and `driver_errors.py` translates the errors of redis-py.
"""
