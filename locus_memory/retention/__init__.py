"""Retention: rules for items and threads, what they delete, and a task that applies them.

The first rule that matches a namespace or a thread decides about it alone. A report says what a
call deleted, or with `dry_run` what it would delete.

Read `rules.py` first, then `applying.py`; `items.py` and `threads.py` choose and delete, and
`task.py` runs in the background.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from locus_memory._internal.lazy import lazy_names

if TYPE_CHECKING:
    from locus_memory.retention.applying import retain
    from locus_memory.retention.report import Retained, RetentionReport
    from locus_memory.retention.rules import ItemRule, RetentionRule, ThreadRule, read_rules
    from locus_memory.retention.task import RetentionTask
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "ItemRule": "rules",
            "Retained": "report",
            "RetentionReport": "report",
            "RetentionRule": "rules",
            "RetentionTask": "task",
            "ThreadRule": "rules",
            "read_rules": "rules",
            "retain": "applying",
        },
    )

__all__ = [
    "ItemRule",
    "Retained",
    "RetentionReport",
    "RetentionRule",
    "RetentionTask",
    "ThreadRule",
    "read_rules",
    "retain",
]
