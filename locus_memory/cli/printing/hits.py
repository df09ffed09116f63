"""The output of a search: speaker, text and place of each hit, and the parts of its score."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.text import Text

from locus_memory.cli.printing.output import marked
from locus_memory.cli.printing.tables import Cell, print_records
from locus_memory.inspection.items import hit_fields
from locus_memory.inspection.names import format_namespace
from locus_memory.inspection.text import visible, visible_name

if TYPE_CHECKING:
    from rich.console import Console

    from locus_memory.retrieval.hybrid import Hit
    from locus_memory.retrieval.ranking.fields import Passage
    from locus_memory.store.item import StoreItem

__all__ = ["print_hits"]

_SNIPPET = 160
_PLACE = 60
"""The longest place of a hit on a terminal; of a longer one the middle is left out."""

_SHORTEST = 20
"""The least of a place that is shown."""

_INDENT = "      "
_ROOM = 60
"""Longest sum whose result fits on the same line of a terminal with 80 columns."""


def print_hits(
    console: Console, items: Sequence[StoreItem], query: str, *, why: Sequence[Hit] = ()
) -> None:
    """Print the hits, with the query's words highlighted: two lines each on a terminal.

    Args:
        console: The console; a pipe gets one line each, with the whole text.
        items: The items that were found, with their scores.
        query: The query.
        why: The same as hits: the parts of each score follow.
    """
    reasons = [_reasons(hit) for hit in why] or [[] for _ in items]
    if not console.is_terminal:
        told: list[list[Cell]] = [["; ".join(each)] if why else [] for each in reasons]
        print_records(console, [_record(item) + end for item, end in zip(items, told, strict=True)])
        return
    for item, parts in zip(items, reasons, strict=True):
        passage = hit_fields().read(item)
        lines = [
            _headed(item, passage, console.width),
            _said(passage.text, query, console.width - len(_INDENT)),
        ]
        for number, line in enumerate(lines):
            shown = marked(Text(_INDENT).append_text(line) if number else line)
            shown.truncate(console.width, overflow="ellipsis")
            console.print(shown, soft_wrap=True)
        for reason in parts:
            console.print(Text(f"{_INDENT}  {reason}", style="dim"), soft_wrap=True)


def _record(item: StoreItem) -> list[Cell]:
    """Return a hit as a record of a pipe, with its whole text."""
    passage = hit_fields().read(item)
    speaker = passage.speakers[0] if passage.speakers else ""
    place = [format_namespace(item.namespace), item.key]
    return [f"{item.score or 0:.2f}", *place, speaker, _moment(item, passage), passage.text]


def _headed(item: StoreItem, passage: Passage, width: int) -> Text:
    """Return the score, the place, the speaker and the time of a hit."""
    end = Text()
    if passage.speakers:
        end.append("  ").append(visible_name(passage.speakers[0]), style="bold")
    when = _moment(item, passage)
    if when:
        end.append(visible_name(f"  {when}"), style="dim")
    place = visible_name(f"{format_namespace(item.namespace)} {item.key}")
    room = min(_PLACE, max(_SHORTEST, width - len(_INDENT) - end.cell_len))
    if len(place) > room:
        place = f"{place[: room // 2]}…{place[1 - (room + 1) // 2 :]}"
    return Text(f"{item.score or 0:.2f}  {place}").append_text(end)


def _moment(item: StoreItem, passage: Passage) -> str:
    when = item.value.get("session_date") if isinstance(item.value, dict) else None
    day = "" if passage.day is None else passage.day.isoformat()
    return when if isinstance(when, str) else day


def _said(text: str, query: str, room: int) -> Text:
    """Return the words around the first match, as many as a line has room for."""
    from locus_memory.store.text import tokens  # noqa: PLC0415 - help must be quick

    body = " ".join(text.split())
    room = min(room, _SNIPPET)
    wanted = set(tokens(query))
    words = [m.span() for m in re.finditer(r"\w+", body) if wanted & set(tokens(m[0]))]
    start = _start(body, words[0][0], room) if words and len(body) > room else 0
    shown = Text("…" if start else "")
    for offset, (first, last) in enumerate(words):
        previous = words[offset - 1][1] if offset else start
        shown.append(visible(body[max(previous, start) : first]))
        shown.append(visible(body[first:last]), style="bold yellow")
    shown.append(visible(body[words[-1][1] if words else 0 :]))
    shown.truncate(room, overflow="ellipsis")
    return shown


def _start(body: str, first: int, room: int) -> int:
    """Return the start of a word at some distance before the first match."""
    start = max(0, first - room // 2)
    return body.find(" ", start, first) + 1 or start if start else 0


def _reasons(hit: Hit) -> list[str]:
    """Return the parts of a score, as a sum that the reader can check, and the relevance."""
    score, parts = hit.score, hit.parts
    if parts is None:
        return []
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
    if parts.sentence is not None:
        evidence, changes = [f"best sentence {parts.sentence:.2f}"], changes[2:]
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
