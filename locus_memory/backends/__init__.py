"""The backends: one folder a database, with the same file names in each.

Import a backend from its own folder or through the registry. The modules beside the folders hold
what several backends share, so that a backend is a connection, a schema and two classes.

Read `base.py` and `providers.py` first, then `inmemory/`, the smallest backend.
"""
