"""Changes of threads: a fork, a deletion and pruning, the latter two with a preview first."""

from __future__ import annotations

from starlette.responses import Response

from locus_memory.inspection.text import counted
from locus_memory.web.pages.frame.visit import Told, Visit
from locus_memory.web.questions.threads import (
    ForkAsked,
    Forked,
    PruneAsked,
    Pruned,
    RemovalAsked,
    delete_thread,
    prune_checkpoints,
)

__all__ = ["delete", "preview_prune", "tell_forked", "tell_pruned"]


def tell_forked(done: Forked, asked: ForkAsked) -> Told:
    """Lead to the new thread."""
    del asked
    said = f"{done.thread_id} begins at this checkpoint of {done.source}."
    return "/threads/timeline", said, {"thread": done.thread_id}


def tell_pruned(done: Pruned, asked: PruneAsked) -> Told:
    """Lead back to the thread."""
    del asked
    said = f"Deleted: {done.deleted} of {counted(done.total, 'checkpoint')}."
    return "/threads/timeline", said, {"thread": done.thread_id}


async def preview_prune(visit: Visit) -> Response:
    """Return the form of pruning; once it has a limit, with what would be deleted."""
    has_limit = visit.text("keep_last") is not None or visit.text("older_than") is not None
    asked = visit.asked(PruneAsked, dry_run=True)
    plan = await prune_checkpoints(visit.data, asked) if has_limit else None
    return visit.render("threads/prune.html", asked=asked, plan=plan)


async def delete(visit: Visit) -> Response:
    """Delete a thread or one checkpoint."""
    done = await delete_thread(visit.data, visit.asked(RemovalAsked, dry_run=False))
    if done.checkpoint_id is None:
        return visit.go("/threads", f"{done.thread_id} is deleted.")
    said = f"The checkpoint {done.checkpoint_id} is deleted."
    if not await visit.data.checkpointer.exists(done.thread_id):
        return visit.go("/threads", said)
    return visit.go("/threads/timeline", said, thread=done.thread_id)
