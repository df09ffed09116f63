"""The pages of threads: the list, a thread as a timeline, a state, differences, and changes.

Each module has the handlers of one kind of page; this one lists their routes. What a message looks
like is decided in `messages.py`, and where the lines of forks run in `drawing.py`.

Read `timeline.py` first, then `state.py`, `difference.py` and `changes.py`.
"""

from __future__ import annotations

from locus_memory.web.pages.frame.visit import Group, done, get, post, shown
from locus_memory.web.pages.threads import changes, difference, state, timeline
from locus_memory.web.questions.threads import (
    delete_thread,
    fork_checkpoint,
    prune_checkpoints,
)

__all__ = ["GROUP"]

GROUP = Group(
    "/threads",
    "Threads",
    (
        get("/threads", timeline.show_threads),
        get("/threads/timeline", timeline.show),
        get("/threads/branches", timeline.show_branches),
        get("/threads/at", state.show),
        get("/threads/diff", difference.show),
        get("/threads/prune", changes.preview_prune),
        done("/threads/prune", prune_checkpoints, changes.tell_pruned, dry_run=False),
        shown("/threads/delete", delete_thread, "threads/delete.html", "plan", dry_run=True),
        post("/threads/delete", changes.delete),
        done("/threads/fork", fork_checkpoint, changes.tell_forked),
    ),
)
