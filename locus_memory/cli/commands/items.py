"""The item commands: ls, get, put and rm."""

from __future__ import annotations

import sys
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import orjson
import typer

from locus_memory.cli.options.common import Limit, parse_object
from locus_memory.cli.options.confirmation import Yes, confirm, refuse_unasked
from locus_memory.cli.options.session import Session
from locus_memory.cli.printing.output import remark
from locus_memory.cli.printing.paging import COUNTED
from locus_memory.cli.printing.tables import Cell, Cut, print_table
from locus_memory.inspection.errors import CommandError, UsageError
from locus_memory.inspection.names import (
    Labels,
    format_namespace,
    nearest,
    parse_namespace,
)
from locus_memory.inspection.text import compact, visible, visible_name
from locus_memory.store.base import all_namespaces
from locus_memory.transfer.chats.exact_json import InexactNumberError, parse_json

if TYPE_CHECKING:
    from rich.console import Console

    from locus_memory.backends.base import Backend
    from locus_memory.store.item import StoreItem

__all__ = ["get", "list_items", "put", "remove"]

NamespaceArgument = Annotated[
    str, typer.Argument(metavar="NAMESPACE", help="Labels joined by '/', or a JSON list.")
]
KeyArgument = Annotated[str, typer.Argument(metavar="KEY", help="Key of the item.")]

_SNIPPET = 160


def list_items(
    session: Session,
    namespace: Annotated[
        str | None,
        typer.Argument(
            metavar="NAMESPACE",
            help="Labels joined by '/', or a JSON list; all namespaces by default.",
        ),
    ] = None,
    *,
    limit: Limit = 100,
    after: Annotated[
        str | None, typer.Option(metavar="KEY", help="Only keys or namespaces after this one.")
    ] = None,
) -> None:
    """List the namespaces, or the keys of one namespace."""
    labels = None if namespace is None else parse_namespace(namespace)
    document = session.show(partial(_list, labels=labels, limit=limit, after=after), _render_list)
    _tell_more(session, document)


async def _list(
    backend: Backend, *, labels: Labels | None, limit: int, after: str | None
) -> dict[str, Any]:
    if labels is None:
        start = None if after is None else parse_namespace(after)
        spaces = await backend.store.list_namespaces(None, limit, after=start)
        last = spaces[-1] if spaces else start
        rest = await backend.store.list_namespaces(None, COUNTED, after=last)
        return {
            "namespace": None,
            "namespaces": [list(s) for s in spaces],
            "more_namespaces": len(rest),
            "items": [],
            "more": 0,
            "next": format_namespace(last) if rest and last else None,
        }
    items = await backend.store.scan(labels, limit, after=after)
    # The first page has listed them.
    spaces = [] if after is not None else [s async for s in all_namespaces(backend.store, labels)]
    below = [list(space) for space in spaces if space != labels]
    if not items and not below and after is None:
        raise CommandError(f"no items in {format_namespace(labels)}")
    end = items[-1].key if items else after
    rest_of_keys = await backend.store.list_keys(labels, COUNTED, after=end)
    return {
        "namespace": list(labels),
        "namespaces": below[:limit],
        "more_namespaces": len(below[limit:]),
        "items": [item.to_dict() for item in items],
        "more": len(rest_of_keys),
        "next": end if rest_of_keys else None,
    }


def _tell_more(session: Session, document: dict[str, Any]) -> None:
    """Print how many namespaces and keys were left out."""
    left = document["more_namespaces"]
    if document["namespace"] is None:
        session.tell_more(left, "more namespaces", after=document["next"])
        return
    everything = len(document["namespaces"]) + left
    session.tell_more(left, "more namespaces", limit=everything)
    session.tell_more(document["more"], "more keys", after=document["next"])


def _render_list(console: Console, document: dict[str, Any]) -> None:
    if document["namespaces"]:
        names = [[format_namespace(tuple(labels))] for labels in document["namespaces"]]
        print_table(console, ["namespace"], names)
    if document["items"]:
        columns = ["key", ">version", "updated (UTC)", "~value"]
        print_table(console, columns, _rows(document))
    if not document["namespaces"] and not document["items"]:
        remark(console, "no items")


def _rows(document: dict[str, Any]) -> list[list[Cell]]:
    return [
        [
            item["key"],
            item["version"],
            datetime.fromisoformat(item["updated_at"]),
            Cut(compact(item["value"]), _SNIPPET),
        ]
        for item in document["items"]
    ]


def get(
    session: Session,
    namespace: NamespaceArgument,
    key: KeyArgument,
) -> None:
    """Print the value of an item; with --json the whole item."""
    item = session.run(partial(_get, labels=parse_namespace(namespace), key=key))
    session.answer(item.to_dict(), partial(_render_value, item=item))


async def _get(backend: Backend, *, labels: Labels, key: str) -> StoreItem:
    item = await backend.store.get_item(labels, key)
    if item is None:
        told = await nearest(key, partial(backend.store.list_keys, labels))
        raise CommandError(f"no item {key!r} in {format_namespace(labels)}{told}")
    return item


def _render_value(console: Console, item: StoreItem) -> None:
    value = item.value
    if not isinstance(value, str):
        value = orjson.dumps(value, option=orjson.OPT_INDENT_2).decode()
    elif console.is_terminal:
        value = visible(value)
    console.out(value, highlight=False)


def put(
    session: Session,
    namespace: NamespaceArgument,
    key: KeyArgument,
    value: Annotated[
        str, typer.Argument(metavar="VALUE", help="JSON, or else plain text; - reads stdin.")
    ],
    *,
    string: Annotated[bool, typer.Option(help="Store VALUE as text even if it is JSON.")] = False,
    metadata: Annotated[
        str | None, typer.Option(metavar="JSON", help="Metadata, a JSON object.")
    ] = None,
    ttl: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="Seconds until the item expires.")
    ] = None,
    text: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Text to index instead of the value.")
    ] = None,
    if_version: Annotated[
        int | None, typer.Option(metavar="N", help="Required current version; 0 for a new item.")
    ] = None,
) -> None:
    """Insert or replace an item."""
    labels = parse_namespace(namespace)
    content = _stdin() if value == "-" else value
    write = {
        "namespace": labels,
        "key": key,
        "value": content if string else _parse_value(content),
        "metadata": parse_object(metadata, "--metadata"),
        "ttl": ttl,
        "text": text,
        "if_version": if_version,
    }
    version = session.run(partial(_put, write=write), create=True)
    name = f"{format_namespace(labels)} {key}"
    session.answer(
        {"namespace": list(labels), "key": key, "version": version},
        lambda console: console.out(f"{visible_name(name)}: version {version}", highlight=False),
    )


async def _put(backend: Backend, *, write: dict[str, Any]) -> int:
    return await backend.store.put(**write)


def _stdin() -> str:
    try:
        return sys.stdin.buffer.read().decode().removesuffix("\n")
    except UnicodeDecodeError as error:
        raise CommandError(f"stdin: not UTF-8 (byte {error.start})") from None


def _parse_value(content: str) -> Any:
    try:
        return parse_json(content)
    except orjson.JSONDecodeError as error:
        # A typo in an object must not become text silently, nor a number another number.
        if content.lstrip()[:1] in ("{", "[", '"') or isinstance(error, InexactNumberError):
            raise UsageError(
                f"VALUE is not valid JSON: {error}; --string stores it as text"
            ) from None
        return content


def remove(
    session: Session,
    namespace: NamespaceArgument,
    key: Annotated[
        str | None, typer.Argument(metavar="KEY", help="Key of the item; all items by default.")
    ] = None,
    *,
    recursive: Annotated[
        bool, typer.Option("--recursive", help="Also delete the namespaces below.")
    ] = False,
    yes: Yes = False,
) -> None:
    """Delete one item, or every item of a namespace."""
    labels = parse_namespace(namespace)
    if key is not None and recursive:
        raise UsageError("--recursive deletes whole namespaces: it takes no KEY")
    if key is None and not yes:
        refuse_unasked("pass --yes to delete a whole namespace")
        confirm(f"delete every item of {format_namespace(labels)}?")
    deleted = session.run(partial(_remove, labels=labels, key=key, recursive=recursive))
    session.answer({"deleted": deleted}, lambda console: console.print(f"deleted {deleted}"))


async def _remove(backend: Backend, *, labels: Labels, key: str | None, recursive: bool) -> int:
    if key is not None:
        deleted = int(await backend.store.delete(labels, key))
    else:
        deleted = await backend.store.clear_namespace(labels, recursive=recursive)
    if not deleted:
        what = "no items" if key is None else f"no item {key!r}"
        raise CommandError(f"{what} in {format_namespace(labels)}")
    return deleted
