"""The list of the groups of pages, in the order of the navigation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from locus_memory.web.front import Pages
from locus_memory.web.pages import answers, danger, memories, overview, saw, store, threads
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


def make_pages(tables: Sequence[Any] = (), plots: Sequence[str] = ()) -> Pages:
    """Return the pages, for `make_app`.

    Args:
        tables: The report of runs of questions, which has a page then: tables with a `title`,
            `columns` and `rows`, all of text.
        plots: The pictures of that report, as SVG.
    """
    groups = (*GROUPS, answers.group(tables, plots)) if tables else GROUPS
    routes = [route for group in groups for route in group.routes]
    return Pages(
        routes=(*routes, *login.ROUTES, *static.ROUTES),
        menu=tuple((group.path, group.title) for group in groups),
        fail=failures.fail,
    )
