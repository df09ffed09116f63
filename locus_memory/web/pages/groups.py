"""The list of the groups of pages, in the order of the navigation."""

from __future__ import annotations

from typing import Final

from locus_memory.web.front import Pages
from locus_memory.web.pages import danger, memories, overview, saw, store, threads
from locus_memory.web.pages.frame import failures, login, static
from locus_memory.web.pages.frame.visit import Group

__all__ = ["GROUPS", "make_pages"]

GROUPS: Final[tuple[Group, ...]] = (
    overview.GROUP,
    threads.GROUP,
    memories.GROUP,
    saw.GROUP,
    saw.TRIAL,
    store.GROUP,
    danger.GROUP,
)  # fmt: skip


def make_pages() -> Pages:
    """Return the pages, for `make_app`."""
    routes = [route for group in GROUPS for route in group.routes]
    return Pages(
        routes=(*routes, *login.ROUTES, *static.ROUTES),
        menu=tuple((group.path, group.title) for group in GROUPS),
        fail=failures.fail,
    )
