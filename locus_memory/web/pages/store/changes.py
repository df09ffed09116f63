"""Changes of one item: put, edit with compare-and-swap, and deletion."""

from __future__ import annotations

import time

from pydantic import Field
from starlette.responses import Response

from locus_memory.errors import InvalidArgumentError
from locus_memory.inspection.errors import UsageError
from locus_memory.inspection.names import parse_namespace
from locus_memory.store.item import Namespace
from locus_memory.web.errors import RefusalError, StaleError, explain_error
from locus_memory.web.matching import Match
from locus_memory.web.models import Asked
from locus_memory.web.pages.frame.filters import as_json
from locus_memory.web.pages.frame.visit import Visit
from locus_memory.web.pages.store.conditions import read_json
from locus_memory.web.questions.items import (
    Item,
    ItemAsked,
    PutItem,
    delete_item,
    get_item,
    put_item,
)

__all__ = ["delete", "put", "show_form"]


class _Draft(Asked):
    """An item as it is written in the form."""

    namespace: tuple[str, ...] = ()
    """The labels; empty: `path` has them."""
    path: str = ""
    """The namespace in the notation of the command line."""
    key: str = ""
    value: str = ""
    metadata: str = ""
    ttl: float | None = Field(default=None, gt=0)
    etag: str = ""
    """The version that the form began with; empty: there was none."""


async def show_form(visit: Visit) -> Response:
    """Return the form of an item: of one that is there, or of a new one."""
    draft = visit.asked(_Draft)
    if draft.key:
        item = await get_item(visit.data, ItemAsked(namespace=draft.namespace, key=draft.key))
        draft = _draft_of(item)
    return _form(visit, draft)


async def put(visit: Visit) -> Response:
    """Put the item if its version is still the one that the form began with."""
    draft = visit.asked(_Draft)
    match = Match.of(draft.etag, None) if draft.etag else Match(absent=True)
    try:
        asked = _put_of(draft)
        try:
            done = await put_item(visit.data, asked, match)
        except StaleError as lost:
            current = await _current(visit, asked)
            return _form(visit, draft, status=412, lost=lost, current=current)
    except (RefusalError, UsageError, InvalidArgumentError) as error:
        status, detail = explain_error(error)
        return _form(visit, draft, status=status, wrong=detail.message)
    return visit.go(
        "/store/item", f"Version {done.version} is stored.", namespace=done.namespace, key=done.key
    )


async def delete(visit: Visit) -> Response:
    """Delete the item if its version is still the one that the page showed."""
    asked = visit.asked(ItemAsked)
    try:
        done = await delete_item(visit.data, asked, Match.of(visit.text("etag"), None))
        is_deleted = bool(done.deleted)
    except StaleError:
        item = await _current(visit, asked)
        if item is not None:
            return visit.render("store/delete.html", status=412, item=item, is_lost=True)
        is_deleted = False
    said = f"{asked.key} is deleted." if is_deleted else f"{asked.key} was deleted before."
    return visit.go("/store/namespace", said, namespace=asked.namespace)


def _form(
    visit: Visit,
    draft: _Draft,
    *,
    status: int = 200,
    lost: StaleError | None = None,
    current: Item | None = None,
    wrong: str | None = None,
) -> Response:
    return visit.render(
        "store/edit.html",
        status=status,
        draft=draft,
        lost=lost,
        current=current,
        wrong=wrong,
    )


def _draft_of(item: Item) -> _Draft:
    left = None if item.expires_at is None else item.expires_at.timestamp() - time.time()
    return _Draft(
        namespace=item.namespace,
        key=item.key,
        value=as_json(item.value),
        metadata=as_json(item.metadata) if item.metadata else "",
        ttl=None if left is None else max(1.0, round(left)),
        etag=item.etag,
    )


def _put_of(draft: _Draft) -> PutItem:
    """Return the request of a draft.

    Raises:
        RefusalError: A part of it is missing or is not JSON.
    """
    metadata = read_json(draft.metadata, "the metadata") if draft.metadata.strip() else None
    if metadata is not None and not isinstance(metadata, dict):
        raise RefusalError(400, 'the metadata are a JSON object, such as {"colour": "red"}')
    if not draft.key:
        raise RefusalError(400, "the item needs a key")
    return PutItem(
        namespace=_namespace(draft),
        key=draft.key,
        value=read_json(draft.value, "the value"),
        metadata=metadata,
        ttl=draft.ttl,
    )


def _namespace(draft: _Draft) -> Namespace:
    return draft.namespace or parse_namespace(draft.path)


async def _current(visit: Visit, asked: PutItem | ItemAsked) -> Item | None:
    """Return what is stored now; `None`: it was deleted."""
    try:
        return await get_item(visit.data, ItemAsked(namespace=asked.namespace, key=asked.key))
    except RefusalError:
        return None
