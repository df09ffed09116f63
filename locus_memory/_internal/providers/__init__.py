"""From a string to a class: the shared part of the registries of backends and models.

An address is parsed once, a class is imported on first use, and it is called with the options it
accepts. The error for a missing library is one sentence that names the extra.

Read `address.py` first, then `construction.py`, `names.py` and `drivers.py`.
"""
