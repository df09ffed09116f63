"""Writes of items: puts and deletes in bulk requests, each with its own outcome."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, Final

from locus_memory.backends.opensearch.connection.connection import OpenSearchConnection
from locus_memory.backends.opensearch.items.documents import (
    Address,
    Document,
    Source,
    microseconds,
)
from locus_memory.backends.opensearch.items.items import read_item
from locus_memory.backends.opensearch.items.mapping import ITEMS
from locus_memory.backends.opensearch.items.scripts import lines_of
from locus_memory.errors import (
    BackendUnavailableError,
    LocusMemoryError,
    VersionConflictError,
)

__all__ = ["Operation", "Outcome", "address_of", "write", "write_each"]

Operation = Document | Address
"""A put, or the address of a delete."""

Outcome = int | LocusMemoryError
"""The new version of a put, whether the item of a delete existed, or the error of either."""

_Part = list[tuple[Operation, list[bytes]]]
_Answer = dict[str, Any]

_MOST_OPERATIONS: Final = 1_000
_MOST_BYTES: Final = 4_000_000
"""About the most of one request; the server takes 100 MB by default."""

_ATTEMPTS: Final = 12
"""How often a write is sent that the server gives up, since others write the same item."""

_CONFLICT: Final = 409


def address_of(operation: Operation) -> Address:
    """Return the address of an operation."""
    return operation.address if isinstance(operation, Document) else operation


async def write(
    connection: OpenSearchConnection, operations: Sequence[Operation], now: datetime
) -> list[int]:
    """Put the documents and delete those at the addresses, in as few requests as possible.

    Returns:
        For each put the new version, for each delete whether the item existed, in order.

    Raises:
        VersionConflictError: One `if_version` does not hold; the operations before it are done,
            and some after it.
        BackendError: The server refused an operation; the others as before.
    """
    results: list[int] = []
    for part in _parts(operations, now):
        for outcome in await _write_part(connection, part, now):
            if isinstance(outcome, LocusMemoryError):
                raise outcome
            results.append(outcome)
    return results


async def write_each(
    connection: OpenSearchConnection, operations: Sequence[Operation], now: datetime
) -> list[Outcome]:
    """Do operations on distinct items; return the outcome of each."""
    parts = [await _write_part(connection, part, now) for part in _parts(operations, now)]
    return [outcome for part in parts for outcome in part]


def _parts(operations: Sequence[Operation], now: datetime) -> Iterable[_Part]:
    """Yield the operations with their lines, in parts that fit into one request."""
    part: _Part = []
    size = 0
    for each in operations:
        lines = lines_of(each, now)
        length = sum(map(len, lines))
        if part and (len(part) >= _MOST_OPERATIONS or size + length > _MOST_BYTES):
            yield part
            part, size = [], 0
        part.append((each, lines))
        size += length
    yield part


async def _write_part(
    connection: OpenSearchConnection, part: _Part, now: datetime
) -> list[Outcome]:
    """Do the operations of one request; return the outcome of each."""
    try:
        answers = await _settle(connection, [lines for _, lines in part])
    finally:
        connection.dirty(ITEMS)
    outcomes: list[Outcome] = []
    for (operation, _), answer in zip(part, answers, strict=True):
        if isinstance(operation, Document):
            outcomes.append(_put_outcome(connection, operation, answer, now))
        else:
            outcomes.append(await _delete_outcome(connection, operation, answer, now))
    return outcomes


async def _settle(
    connection: OpenSearchConnection, operations: Sequence[list[bytes]]
) -> list[_Answer]:
    """Send operations, again those that lost against another writer; return the answers."""
    answers: list[_Answer] = [{} for _ in operations]
    left = list(range(len(operations)))
    for attempt in range(_ATTEMPTS):
        if attempt:
            await asyncio.sleep(random.uniform(0, 0.01 * 2**attempt))  # noqa: S311 - no secret
        lines = [line for place in left for line in operations[place]]
        for place, answer in zip(left, await connection.bulk(lines, ITEMS), strict=True):
            answers[place] = answer
        left = [place for place in left if answers[place]["status"] == _CONFLICT]
        if not left:
            break
    return answers


def _put_outcome(
    connection: OpenSearchConnection, document: Document, answer: _Answer, now: datetime
) -> Outcome:
    if "error" in answer:
        return _refusal(connection, answer)
    source: Source = answer["get"].get("_source", {})
    version: int = source.get("version", 0)
    if answer["result"] != "noop" or source.get("operation") == document.operation:
        return version
    is_gone = source.get("expires", microseconds(now) + 1) <= microseconds(now)
    return _conflict(document.address, 0 if is_gone else version)


async def _delete_outcome(
    connection: OpenSearchConnection, address: Address, answer: _Answer, now: datetime
) -> Outcome:
    is_missing = answer.get("error", {}).get("type") == "document_missing_exception"
    if "error" in answer and not is_missing:
        return _refusal(connection, answer)
    if answer.get("result") == "deleted":
        return 1
    if address.if_version is not None:
        # The script deleted nothing, and an answer to a delete has no version.
        item = None if is_missing else await read_item(connection, address, now)
        actual = 0 if item is None else item.version
        if actual != address.if_version:
            return _conflict(address, actual)
    return 0


def _refusal(connection: OpenSearchConnection, answer: _Answer) -> LocusMemoryError:
    if answer["status"] != _CONFLICT:
        return connection.refusal(answer)
    return BackendUnavailableError(
        f"opensearch {connection.place}: an item is written by too many at once"
    )


def _conflict(address: Address, actual: int) -> VersionConflictError:
    return VersionConflictError(address.if_version or 0, actual, address.namespace, address.key)
