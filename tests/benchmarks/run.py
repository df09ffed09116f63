"""Measure every figure, or those named, and print the table; exits 1 if a bar is missed."""

from __future__ import annotations

import argparse
import asyncio
import platform
import sqlite3
import sys
import tempfile
from pathlib import Path

from checkpoints import (
    against_raw,
    cold_load,
    large_states,
    saves,
    saves_of_shapes,
    sizes,
)
from conversation_managers import applied, asks
from documents import documents
from documents_unseen import source_documents, unseen_documents
from fan_out import fan_out
from frameworks import framework_appends, framework_crowd, framework_imports
from imports import imports
from injection import budgets
from memory_manager import agents, sessions, turns
from observing import observing
from pages import pages
from rows import Row, table
from scale import scale
from scale_spaces import LAYOUTS
from servers import server_crowd, server_recall, server_saves, server_sizes, server_store
from shown import shown
from stores import puts_and_gets, vectors
from vector_types import vector_types

MEASURES = (
    sizes,
    saves,
    saves_of_shapes,
    against_raw,
    cold_load,
    large_states,
    puts_and_gets,
    vectors,
    turns,
    sessions,
    agents,
    budgets,
    shown,
    documents,
    asks,
    applied,
    observing,
    imports,
    framework_appends,
    framework_imports,
    framework_crowd,
    server_sizes,
    server_saves,
    server_crowd,
    server_store,
    server_recall,
)


# They take minutes to an hour, or a quiet machine, so they run only if they are named.
ON_REQUEST = (pages, scale, fan_out, unseen_documents, source_documents, vector_types)
OPTIONS = {
    scale: lambda given: {
        "most": given.most,
        "backends": given.backends,
        "layouts": given.layouts,
    },
    vector_types: lambda given: {"most": given.most},
    fan_out: lambda given: {"minutes": given.minutes},
    **dict.fromkeys(
        (documents, unseen_documents, source_documents), lambda given: {"late": given.late}
    ),
}


def asked():
    """Return the arguments: the names of the measures to run, and the size of the growth curve."""
    known = [measure.__name__ for measure in (*MEASURES, *ON_REQUEST)]
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("measures", nargs="*", metavar="MEASURE", help=", ".join(known))
    parser.add_argument(
        "--most", type=int, default=100_000, help="the items of `scale` and `vector_types`, at most"
    )
    parser.add_argument(
        "--backends",
        nargs="+",
        default=["sqlite", "memory"],
        help="of `scale`: also postgresql and redis",
    )
    parser.add_argument(
        "--layouts", nargs="+", default=list(LAYOUTS), help="the namespaces of `scale`"
    )
    parser.add_argument("--minutes", type=float, default=10.0, help="of `fan_out`, on each server")
    parser.add_argument(
        "--late", action="store_true", help="of documents: late interaction too, which takes hours"
    )
    given = parser.parse_args()
    chosen = given.measures or [measure.__name__ for measure in MEASURES]
    if unknown := set(chosen) - set(known):
        parser.error(f"no measure {', '.join(sorted(unknown))}; there are: {', '.join(known)}")
    return chosen, given


async def main(names, given) -> int:
    rows: list[Row] = []
    for measure in (*MEASURES, *ON_REQUEST):
        if measure.__name__ not in names:
            continue
        print(f"measuring: {measure.__name__}", file=sys.stderr, flush=True)
        with tempfile.TemporaryDirectory() as folder:
            more = OPTIONS[measure](given) if measure in OPTIONS else {}
            rows += await measure(Path(folder), **more)
    print(f"Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}\n")
    print(table(rows))
    return 0 if all(row.reached for row in rows) else 1


if __name__ == "__main__":
    raise SystemExit(asyncio.run(main(*asked())))
