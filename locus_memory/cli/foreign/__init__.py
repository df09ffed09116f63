"""Imports from the databases of other frameworks: `import --format NAME --from DATABASE`.

`family.py` is what they share: a source that is opened before the target, the progress, the
answer, and an exit code that tells what was left out. `formats.py` lists the formats; beside it,
each framework has a file with its own part. Read them in this order.
"""

from __future__ import annotations

__all__: list[str] = []
