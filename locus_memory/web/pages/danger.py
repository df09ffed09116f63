"""The danger zone: erasure of a user or a namespace, and the upkeep that runs by itself else."""

from __future__ import annotations

from typing import Final

from starlette.responses import Response

from locus_memory.inspection.memories import whose
from locus_memory.inspection.names import format_namespace, parse_namespace
from locus_memory.inspection.text import counted
from locus_memory.web.errors import RefusalError
from locus_memory.web.models import Asked, UserAsked
from locus_memory.web.pages.frame.visit import Group, Told, Visit, done, get, post, shown
from locus_memory.web.questions.editing import ForgetAsked, Forgotten, forget_data
from locus_memory.web.questions.items import ItemsClear, clear_namespace
from locus_memory.web.questions.layers import (
    ConsolidateAsked,
    Consolidated,
    SyncAnswer,
    consolidate,
    sync_now,
)
from locus_memory.web.questions.memories import list_users

__all__ = ["GROUP"]


async def _show(visit: Visit) -> Response:
    users = await list_users(visit.data, Asked())
    return visit.render("danger/danger.html", users=users.users)


async def _preview_forget(visit: Visit) -> Response:
    asked = ForgetAsked(user=_user(visit), dry_run=True)
    plan = await forget_data(visit.data, asked)
    near = await whose(visit.data.backend, visit.data.manager, asked.user)
    return visit.render("danger/forget.html", asked=asked, plan=plan, near=near)


async def _forget(visit: Visit) -> Response:
    user = _user(visit)
    if visit.text("confirm") != user:
        raise RefusalError(400, "the name that was typed is not the user's: nothing is erased")
    asked = ForgetAsked(user=user, dry_run=False, confirm=visit.text("confirm"))
    erased = await forget_data(visit.data, asked)
    return visit.go("/danger", f"All data of {user} is erased: {_told(erased)}.")


def _told(done: Forgotten) -> str:
    """Return what was erased, in words."""
    parts = (
        counted(len(done.memories), "memory", "memories"),
        counted(done.episodes, "session with notes", "sessions with notes"),
        counted(done.turns, "turn"),
        counted(len(done.items), "item"),
    )
    threads = f"{counted(done.checkpoints, 'checkpoint')} of {counted(len(done.threads), 'thread')}"
    return f"{', '.join(parts)} and {threads}"


async def _preview_clear(visit: Visit) -> Response:
    asked = _clearing(visit, dry_run=True)
    plan = await clear_namespace(visit.data, asked)
    return visit.render(
        "danger/clear.html", asked=asked, plan=plan, path=format_namespace(asked.namespace)
    )


async def _clear(visit: Visit) -> Response:
    asked = _clearing(visit, dry_run=False)
    path = format_namespace(asked.namespace)
    if visit.text("confirm") != path:
        raise RefusalError(400, "the name that was typed is not the namespace's: nothing is erased")
    cleared = await clear_namespace(visit.data, asked)
    return visit.go("/danger", f"Deleted from {path}: {counted(cleared.deleted, 'item')}.")


def _tell_consolidated(done: Consolidated, asked: ConsolidateAsked) -> Told:
    del asked
    took, gone = f"{done.duration_ms:.0f} ms", counted(done.evicted, "expired fact")
    return "/danger", f"Consolidated in {took}: {gone} moved to the history.", {}


def _tell_distilled(done: SyncAnswer, asked: UserAsked) -> Told:
    del asked
    return "/danger", f"The queued sessions are distilled; {done.pending} jobs wait.", {}


def _user(visit: Visit) -> str:
    user = visit.text("user")
    if user is None:
        raise RefusalError(400, "name the user whose data is erased")
    return user


def _clearing(visit: Visit, *, dry_run: bool) -> ItemsClear:
    """Return which namespace to clear; the labels go before the notation of the command line."""
    path = visit.text("path")
    if not visit.fields.getlist("namespace") and path is not None:
        return visit.asked(ItemsClear, namespace=parse_namespace(path), dry_run=dry_run)
    return visit.asked(ItemsClear, dry_run=dry_run)


_CONSOLIDATE: Final = "/danger/consolidate"

GROUP = Group(
    "/danger",
    "Danger zone",
    (
        get("/danger", _show),
        get("/danger/forget", _preview_forget),
        post("/danger/forget", _forget),
        get("/danger/clear", _preview_clear),
        post("/danger/clear", _clear),
        shown(_CONSOLIDATE, consolidate, "danger/consolidate.html", "report", dry_run=True),
        done(_CONSOLIDATE, consolidate, _tell_consolidated, dry_run=False),
        done("/danger/sync", sync_now, _tell_distilled),
    ),
)
