"""The connection to an OpenSearch cluster: addresses, clients, errors and indexes.

Read `connection.py` first, then `client.py`, the client of one event loop, with `driver.py` below
it. `opening.py` learns the features of the server and creates indexes; `driver_errors.py` has the
table of errors.
"""
