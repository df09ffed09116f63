"""The scripts of writes: each puts or deletes one document in one request, exactly once.

The server reads the document, runs the script and writes the result only if nobody else has
written meanwhile, else it begins again. So the version is exact however many processes write. A
put carries a token, so that one that arrives twice is written once.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

import orjson

from locus_memory.backends.opensearch.items.documents import Address, Document, microseconds

__all__ = ["lines_of"]

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


def lines_of(operation: Document | Address, now: datetime) -> list[bytes]:
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


def _lines(address: Address, body: dict[str, Any]) -> list[bytes]:
    place = {"_id": address.id, "routing": address.routing, "retry_on_conflict": _ATTEMPTS}
    return [orjson.dumps({"update": place}), orjson.dumps(body)]
