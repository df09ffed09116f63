"""The report of runs of questions, which was made before the server began."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from starlette.responses import Response

from locus_memory.web.pages.frame.visit import Group, Visit, get

__all__ = ["group"]


def group(tables: Sequence[Any], plots: Sequence[str]) -> Group:
    """Return the page of a report.

    Args:
        tables: Its tables, each with a `title`, `columns` and `rows`, all of text.
        plots: Its pictures, as SVG.
    """
    bare = list(map(_bare, plots))

    async def show(visit: Visit) -> Response:
        return visit.render("answers.html", tables=tables, plots=bare)

    return Group("/answers", "Answers", (get("/answers", show),))


def _bare(plot: str) -> str:
    """Return a picture without its styles: the page has none, and the pictures stay light."""
    start, _, rest = plot.partition("<style>")
    return start + rest.partition("</style>")[2]
