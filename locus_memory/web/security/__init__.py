"""The checks of each request, before any code that asks the backend runs.

`Guard` checks the host, the origin, the token, the method and the size of a request, and adds the
headers that keep a browser from running foreign code. It is the one place that refuses writes of
a read-only application.

Read `guard.py` first, then `hosts.py`.
"""
