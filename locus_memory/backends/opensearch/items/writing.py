"""Writes of items: each puts or deletes one document by a script, exactly once.

The server reads the document, runs the script and writes the result only if nobody else has
written meanwhile, else it begins again. So the version is exact however many processes write. A
put carries a token, so that one that arrives twice is written once.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

import orjson

from locus_memory.backends.opensearch.connection.connection import Item, OpenSearchConnection
from locus_memory.backends.opensearch.items.documents import (
    Address,
    Document,
    Source,
    microseconds,
)
from locus_memory.backends.opensearch.items.items import read_item
from locus_memory.backends.opensearch.items.mapping import ITEMS
from locus_memory.errors import (
    BackendUnavailableError,
    LocusMemoryError,
    VersionConflictError,
)

__all__ = ["Operation", "Outcome", "lines_of", "write"]

Operation = Document | Address
"""A put, or the address of a delete."""

Outcome = int | LocusMemoryError
"""The new version of a put, whether the item of a delete existed, or the error of either."""

_PUT: Final = """
def item = ctx._source;
boolean isNew = ctx.op == 'create';
if (!isNew && item.operation == params.fields.operation) { ctx.op = 'none'; return; }
boolean isThere = !isNew && (item.expires == null || item.expires > params.now);
long version = isThere ? item.version : 0L;
if (params.expected != null && params.expected != version) { ctx.op = 'none'; return; }
def created = isThere ? item.created : params.now;
boolean isRestored = params.restored != null;
long updated = params.fields.updated;
if (isThere && !isRestored && item.updated > updated) { updated = item.updated; }
item.clear();
item.putAll(params.fields);
item.updated = updated;
item.version = isRestored ? params.restored.version : version + 1;
item.created = isRestored ? params.restored.created : created;
"""

_DELETE: Final = """
def item = ctx._source;
boolean isGone = item.expires != null && item.expires <= params.now;
boolean isOther = params.expected != null && params.expected != item.version;
ctx.op = isGone || isOther ? 'none' : 'delete';
"""

_ATTEMPTS: Final = 100
"""How often the server begins again when others write the same item."""

_MOST_VERSION: Final = 2**62
"""About the largest integer of the server."""

_CONFLICT: Final = 409


def lines_of(operation: Operation, now: datetime) -> bytes:
    """Return the lines of a bulk request that put a document, or delete the one at an address."""
    if isinstance(operation, Address):
        return _lines(operation, {"script": _call(_DELETE, operation, now)})
    fields = operation.written(now)
    body = {
        "scripted_upsert": True,
        "upsert": {},
        "script": _call(_PUT, operation.address, now, fields=fields, restored=operation.restored),
        "_source": ["version", "operation", "expires"],
    }
    return _lines(operation.address, body)


def _call(script: str, address: Address, now: datetime, **params: Any) -> dict[str, Any]:
    expected = address.if_version
    params["expected"] = None if expected is None else min(expected, _MOST_VERSION)
    return {"source": script, "params": {"now": microseconds(now), **params}}


def _lines(address: Address, body: dict[str, Any]) -> bytes:
    place = {"_id": address.id, "routing": address.routing, "retry_on_conflict": _ATTEMPTS}
    return b"%b\n%b\n" % (orjson.dumps({"update": place}), orjson.dumps(body))


async def write(
    connection: OpenSearchConnection, operations: Sequence[Operation], now: datetime
) -> list[Outcome]:
    """Put the documents and delete those at the addresses, in as few requests as possible.

    Returns:
        The outcome of each, in order.

    Raises:
        BackendError: The server did not answer; some operations may be done.
    """
    try:
        answers = await connection.bulk([lines_of(each, now) for each in operations], ITEMS)
    finally:
        connection.dirty(ITEMS)
    outcomes: list[Outcome] = []
    for operation, answer in zip(operations, answers, strict=True):
        if isinstance(operation, Document):
            outcomes.append(_put_outcome(connection, operation, answer, now))
        else:
            outcomes.append(await _delete_outcome(connection, operation, answer, now))
    return outcomes


def _put_outcome(
    connection: OpenSearchConnection, document: Document, answer: Item, now: datetime
) -> Outcome:
    if error := _refusal(connection, answer):
        return error
    source: Source = answer["get"].get("_source", {})
    version: int = source.get("version", 0)
    if answer["result"] != "noop" or source.get("operation") == document.operation:
        return version
    is_gone = source.get("expires", microseconds(now) + 1) <= microseconds(now)
    return _conflict(document.address, 0 if is_gone else version)


async def _delete_outcome(
    connection: OpenSearchConnection, address: Address, answer: Item, now: datetime
) -> Outcome:
    is_missing = answer.get("error", {}).get("type") == "document_missing_exception"
    if not is_missing and (error := _refusal(connection, answer)):
        return error
    if answer.get("result") == "deleted":
        return 1
    if address.if_version is not None:
        # The script deleted nothing, and an answer to a delete has no version.
        item = None if is_missing else await read_item(connection, address, now)
        actual = 0 if item is None else item.version
        if actual != address.if_version:
            return _conflict(address, actual)
    return 0


def _refusal(connection: OpenSearchConnection, answer: Item) -> LocusMemoryError | None:
    if answer["status"] != _CONFLICT:
        return connection.refusal(answer)
    return BackendUnavailableError(
        f"opensearch {connection.place}: an item is written by too many at once"
    )


def _conflict(address: Address, actual: int) -> VersionConflictError:
    return VersionConflictError(address.if_version or 0, actual, address.namespace, address.key)
