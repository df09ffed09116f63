"""The output of a search: speaker, text and place of each hit, and the parts of its score."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.text import Text

from locus_memory.cli.printing.tables import Cell, print_table
from locus_memory.inspection.items import hit_fields
from locus_memory.inspection.names import format_namespace
from locus_memory.inspection.text import visible, visible_name

if TYPE_CHECKING:
    from rich.console import Console

    from locus_memory.retrieval.hybrid import Hit
    from locus_memory.retrieval.ranking.explain import Explanation
    from locus_memory.store.item import StoreItem

__all__ = ["print_explained", "print_hits"]

_SNIPPET = 160
_ROOM = 60
"""Longest sum whose result fits on the same line of a terminal with 80 columns."""


def print_hits(console: Console, items: Sequence[StoreItem], query: str) -> None:
    """Print the hits, with the query's words highlighted."""
    rows: list[list[Cell]] = [
        [f"{item.score or 0:.2f}", _where(item), _said(item, query)] for item in items
    ]
    records = [_record(item) for item in items]
    print_table(console, [">score", "where", "*what"], rows, records=records)


def print_explained(console: Console, hits: Sequence[Hit], query: str) -> None:
    """Print the hits, each with the parts of its score."""
    rows: list[list[Cell]] = [[f"{hit.score:.2f}", _explained(hit, query)] for hit in hits]
    records = [[*_record(hit.item), _why(hit)] for hit in hits]
    print_table(console, [">score", "*what and why"], rows, records=records)


def _record(item: StoreItem) -> list[Cell]:
    """Return a hit as a record of a pipe, with its whole text."""
    passage = hit_fields().read(item)
    speaker = passage.speakers[0] if passage.speakers else ""
    when = _moment(item) or ("" if passage.day is None else passage.day.isoformat())
    namespace = format_namespace(item.namespace)
    return [f"{item.score or 0:.2f}", namespace, item.key, speaker, when, passage.text]


def _why(hit: Hit) -> str:
    return "; ".join(_reasons(hit.parts, hit)) if hit.parts is not None else ""


def _where(item: StoreItem) -> Text:
    return Text(visible_name(f"{format_namespace(item.namespace)} {item.key}"))


def _explained(hit: Hit, query: str) -> Text:
    lines = [_where(hit.item), _said(hit.item, query)]
    if hit.parts is not None:
        lines += [Text(f"  {reason}", style="dim") for reason in _reasons(hit.parts, hit)]
    return Text("\n").join(lines)


def _said(item: StoreItem, query: str) -> Text:
    """Return the speaker, the time and the words around the first match."""
    from locus_memory.store.text import tokens  # noqa: PLC0415 - help must be quick

    passage = hit_fields().read(item)
    body = passage.text
    wanted = set(tokens(query))
    words = [m.span() for m in re.finditer(r"\w+", body) if wanted & set(tokens(m[0]))]
    start = _start(body, words[0][0]) if words and len(body) > _SNIPPET else 0
    shown = Text("…" if start else "")
    for offset, (first, last) in enumerate(words):
        previous = words[offset - 1][1] if offset else start
        shown.append(visible(body[max(previous, start) : first]))
        shown.append(visible(body[first:last]), style="bold yellow")
    shown.append(visible(body[words[-1][1] if words else 0 :]))
    shown.truncate(_SNIPPET, overflow="ellipsis")
    day = None if passage.day is None else passage.day.isoformat()
    return _speaker(passage.speakers, _moment(item) or day).append_text(shown)


def _start(body: str, first: int) -> int:
    """Return the start of a word at some distance before the first match."""
    start = max(0, first - _SNIPPET // 2)
    return body.find(" ", start, first) + 1 or start if start else 0


def _moment(item: StoreItem) -> str | None:
    when = item.value.get("session_date") if isinstance(item.value, dict) else None
    return when if isinstance(when, str) else None


def _speaker(speakers: Sequence[str], when: str | None) -> Text:
    shown = Text()
    if speakers:
        shown.append(visible_name(speakers[0]), style="bold")
    if when is not None:
        shown.append(visible_name(f" ({when})" if speakers else f"({when})"), style="dim")
    return shown.append(": ") if shown else shown


def _reasons(parts: Explanation, hit: Hit) -> list[str]:
    """Return the parts of a score, as a sum that the reader can check, and the relevance."""
    score = hit.score
    evidence = [
        f"text {parts.text:.2f} (#{parts.text_rank})" if parts.text_rank else "",
        f"vector {parts.vector:.2f} (#{parts.vector_rank})" if parts.vector_rank else "",
        f"own words {parts.words:.2f}" if parts.words else "",
        f"neighbour {parts.neighbour:.2f}" if parts.neighbour else "",
    ]
    changes = [
        f"x{parts.speaker:g} speaker" if parts.speaker != 1 else "",
        f"x{parts.date:g} date" if parts.date != 1 else "",
        f"+{parts.succession:.2f} for superseding" if parts.succession else "",
    ]
    sums = [" + ".join(filter(None, evidence)), ", ".join(filter(None, changes))]
    if len(sums[0]) > _ROOM and not sums[1]:
        sums[1] = "in total"
    lines = list(filter(None, sums))
    whole = parts.score + parts.capped
    lines[-1] += f" = {whole:.2f}"
    if parts.rerank is not None:
        lines.append(f"blended with reranker {parts.rerank:.3g}: {score:.2f}")
    elif f"{score:.2f}" != f"{whole:.2f}":
        # A long search ranks its candidates window by window.
        lines.append(f"from a later window, so capped at {score:.2f}")
    if parts.superseded_by is not None:
        lines.append(f"superseded by {visible_name(parts.superseded_by)}")
    return [*lines, f"relevance {hit.relevance:.2f}"]
