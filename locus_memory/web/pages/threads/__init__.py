"""The pages of threads: the list, a thread as a timeline, a state, differences, and changes.

Each module has the handlers of one kind of page; this one lists their routes. What a message looks
like is decided in `messages.py`, and where the lines of forks run in `drawing.py`.

Read `timeline.py` first, then `state.py`, `difference.py` and `changes.py`.
"""

from __future__ import annotations

from locus_memory.web.pages.frame.visit import Group, get, post
from locus_memory.web.pages.threads import changes, difference, listing, state, timeline

__all__ = ["GROUP"]

GROUP = Group(
    "/threads",
    "Threads",
    (
        get("/threads", listing.show),
        get("/threads/timeline", timeline.show),
        get("/threads/branches", timeline.show_branches),
        get("/threads/at", state.show),
        get("/threads/diff", difference.show),
        get("/threads/prune", changes.preview_prune),
        post("/threads/prune", changes.prune),
        get("/threads/delete", changes.preview_deletion),
        post("/threads/delete", changes.delete),
        post("/threads/fork", changes.fork),
    ),
)
