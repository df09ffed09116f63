"""The report of runs of questions, which was made before the server began."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

from starlette.responses import Response

from locus_memory.web.pages.frame.visit import Group, Visit, get

__all__ = ["group"]

_STYLE: Final = re.compile(r"<style>.*?</style>", re.DOTALL)


def group(tables: Sequence[Any], plots: Sequence[str]) -> Group:
    """Return the page of a report.

    Args:
        tables: Its tables, each with a `title`, `columns` and `rows`, all of text.
        plots: Its pictures, as SVG.
    """
    # A page has no styles of its own, so the pictures stay light.
    bare = [_STYLE.sub("", plot) for plot in plots]

    async def show(visit: Visit) -> Response:
        return visit.render("answers.html", tables=tables, plots=bare)

    return Group("/answers", "Answers", (get("/answers", show),))
