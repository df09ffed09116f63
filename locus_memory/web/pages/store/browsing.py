"""The tree of namespaces, the items of one, and one item."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pydantic import Field
from starlette.responses import Response

from locus_memory.web.models import LIMIT, Asked, Labels
from locus_memory.web.pages.frame.filters import as_json
from locus_memory.web.pages.frame.visit import Visit
from locus_memory.web.pages.store.conditions import OPERATORS, Condition, make_filter, read_json
from locus_memory.web.questions.items import (
    ItemHit,
    ItemsAsked,
    ItemSearchAsked,
    NamespacesAsked,
    list_items,
    list_namespaces,
    search_items,
)

__all__ = ["show_namespace"]

_LINES = 3
"""The lines of conditions of the form."""


class _NamespaceAsked(Asked):
    """A namespace, and what to find in it."""

    namespace: Labels
    query: str | None = None
    filter: str | None = None
    """A filter as JSON; it goes before the conditions."""
    prefix: str | None = None
    field: tuple[str, ...] = ()
    op: tuple[str, ...] = ()
    any: bool = False
    recursive: bool = False
    cursor: str | None = None
    limit: int = Field(default=100, ge=1, le=LIMIT)


@dataclass(frozen=True, slots=True)
class _Found:
    """The rows of a page of items; `is_search`: they come from a search."""

    rows: list[ItemHit]
    next: str | None
    is_search: bool


async def show_namespace(visit: Visit) -> Response:
    """Return the items of a namespace, or those that words and a filter find in it."""
    asked = visit.asked(_NamespaceAsked)
    conditions = _conditions(visit)
    condition = _filter(asked, conditions)
    below = await list_namespaces(
        visit.data,
        NamespacesAsked(prefix=asked.namespace, max_depth=len(asked.namespace) + 1, limit=LIMIT),
    )
    return visit.render(
        "store/namespace.html",
        asked=asked,
        conditions=conditions + [Condition("", "$eq", "")] * (_LINES - len(conditions)),
        filter=condition,
        operators=OPERATORS,
        # A label `*` matches only itself here.
        below=[
            each
            for each in below.namespaces
            if each != asked.namespace and each[: len(asked.namespace)] == asked.namespace
        ],
        found=await _find(visit, asked, condition),
        query=_repeated(visit),
    )


def _conditions(visit: Visit) -> list[Condition]:
    """Return the lines of the form that have a field."""
    fields = visit.fields
    lines = zip(
        fields.getlist("field"), fields.getlist("op"), fields.getlist("value"), strict=False
    )
    return [
        Condition(name, operator if operator in OPERATORS else "$eq", value)
        for name, operator, value in lines
        if name
    ]


def _filter(asked: _NamespaceAsked, conditions: list[Condition]) -> Any:
    """Return the filter of the request.

    Raises:
        RefusalError: It is not JSON.
    """
    if asked.filter is not None:
        return read_json(asked.filter, "the filter")
    return make_filter(conditions, is_any=asked.any)


async def _find(visit: Visit, asked: _NamespaceAsked, condition: Any) -> _Found:
    if asked.query is None and condition is None and not asked.recursive:
        page = await list_items(
            visit.data,
            ItemsAsked(
                namespace=asked.namespace,
                prefix=asked.prefix,
                cursor=asked.cursor,
                limit=asked.limit,
            ),
        )
        rows = [
            ItemHit(item=item, score=None, relevance=None, why=None, explanation=None)
            for item in page.items
        ]
        return _Found(rows, page.next, is_search=False)
    found = await search_items(
        visit.data,
        ItemSearchAsked.model_validate(
            {
                **asked.model_dump(include={"namespace", "query", "recursive", "cursor", "limit"}),
                "filter": None if condition is None else as_json(condition),
            }
        ),
    )
    return _Found(found.hits, found.next, is_search=True)


def _repeated(visit: Visit) -> dict[str, list[str]]:
    """Return the parameters of the page, for the way to the next one."""
    names = [name for name in visit.fields if name not in ("cursor", "namespace")]
    return {name: [str(each) for each in visit.fields.getlist(name)] for name in names}
