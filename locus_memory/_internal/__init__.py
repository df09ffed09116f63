"""Internal helpers; not part of the public API.

Each module does one thing that several parts of the library need, and does not depend on stores,
checkpoints or memories. Any of them may change without notice.

There is no order to read them in: open the one that an import names. `providers/` creates the
objects of provider strings.
"""
