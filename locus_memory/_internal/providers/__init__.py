"""From a string to a class: what the registries of backends, models and embedders share.

An address is parsed once, a class is imported when it is first used, and it is called with the
options it knows. A missing library is one sentence that names the extra.

Read `address.py` first, then `construction.py`, then `drivers.py`.
"""
