"""Imports from the databases of other frameworks: `import --format NAME --from DATABASE`.

`family.py` is what they share: a source that is opened before the target, the progress, the
answer, and an exit code that tells what was left out. `importers.py` has each framework's own part,
and the table of the formats. Read them in this order.
"""

from __future__ import annotations

__all__: list[str] = []
