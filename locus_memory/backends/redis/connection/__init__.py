"""The way to a Redis server, cluster or watched primary: addresses, connections, errors.

`RedisConnection` is shared by any number of tasks and event loops, and gives each loop a pool of
its own. Nothing here knows items or checkpoints.

Read `connection.py` first, then `clients.py` and `pool.py`, `cluster.py` and `sentinel.py`;
`features.py` says what a server can do, and `driver_errors.py` translates the errors of redis-py.
"""
