"""Changes of threads: a fork, a deletion and pruning, the latter two with a preview first."""

from __future__ import annotations

from starlette.responses import Response

from locus_memory.inspection.text import counted
from locus_memory.web.pages.frame.visit import Visit
from locus_memory.web.questions.threads import (
    ForkAsked,
    PruneAsked,
    RemovalAsked,
    delete_thread,
    fork_checkpoint,
    prune_checkpoints,
)

__all__ = ["delete", "fork", "preview_deletion", "preview_prune", "prune"]


async def fork(visit: Visit) -> Response:
    """Fork a thread, and lead to the new one."""
    done = await fork_checkpoint(visit.data, visit.asked(ForkAsked))
    said = f"{done.thread_id} begins at this checkpoint of {done.source}."
    return visit.go("/threads/timeline", said, thread=done.thread_id)


async def preview_prune(visit: Visit) -> Response:
    """Return the form of pruning; once it has a limit, with what would be deleted."""
    has_limit = visit.text("keep_last") is not None or visit.text("older_than") is not None
    asked = visit.asked(PruneAsked, dry_run=True)
    plan = await prune_checkpoints(visit.data, asked) if has_limit else None
    return visit.render("threads/prune.html", asked=asked, plan=plan)


async def prune(visit: Visit) -> Response:
    """Delete old checkpoints, and lead back to the thread."""
    done = await prune_checkpoints(visit.data, visit.asked(PruneAsked, dry_run=False))
    said = f"Deleted: {done.deleted} of {counted(done.total, 'checkpoint')}."
    return visit.go("/threads/timeline", said, thread=done.thread_id)


async def preview_deletion(visit: Visit) -> Response:
    """Return what the deletion of a thread or of one checkpoint would take away."""
    plan = await delete_thread(visit.data, visit.asked(RemovalAsked, dry_run=True))
    return visit.render("threads/delete.html", plan=plan)


async def delete(visit: Visit) -> Response:
    """Delete a thread or one checkpoint."""
    done = await delete_thread(visit.data, visit.asked(RemovalAsked, dry_run=False))
    if done.checkpoint_id is None:
        return visit.go("/threads", f"{done.thread_id} is deleted.")
    said = f"The checkpoint {done.checkpoint_id} is deleted."
    if not await visit.data.checkpointer.exists(done.thread_id):
        return visit.go("/threads", said)
    return visit.go("/threads/timeline", said, thread=done.thread_id)
