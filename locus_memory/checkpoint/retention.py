"""Retention: pure rules that choose the checkpoints of a thread to delete."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime, timedelta

from locus_memory._internal.quoting import quote
from locus_memory.checkpoint.record import RecordHead
from locus_memory.errors import InvalidArgumentError
from locus_memory.store.item import check_limit, timestamp

__all__ = ["age_of", "cutoff", "expendable", "kept_base", "orphans"]

_LONGEST = timedelta.max.days


def age_of(days: object) -> timedelta:
    """Return a number of days as an age.

    Raises:
        InvalidArgumentError: It is not a number of at least 0.
    """
    if not isinstance(days, int | float) or isinstance(days, bool) or not 0 <= days <= _LONGEST:
        raise InvalidArgumentError(f"older_than_days is a number of at least 0, not {quote(days)}")
    return timedelta(days=days)


def cutoff(older_than: timedelta | datetime | None, now: float) -> float | None:
    """Return the moment, in seconds since the epoch, before which a checkpoint is old.

    Args:
        older_than: An age, or a time (without a time zone: UTC), or `None`.
        now: Seconds since the epoch.

    Raises:
        InvalidArgumentError: It is neither an age nor a time.
    """
    if older_than is None:
        return None
    if not isinstance(older_than, timedelta | datetime):
        raise InvalidArgumentError(
            f"older_than is a timedelta or a datetime, not {type(older_than).__name__}"
        )
    if isinstance(older_than, timedelta):
        return now - older_than.total_seconds()
    moment = older_than if older_than.tzinfo else older_than.replace(tzinfo=UTC)
    return moment.timestamp()


def expendable(
    heads: Sequence[RecordHead], *, keep_last: int | None, before: float | None
) -> set[int]:
    """Return the revisions that meet every given condition; never the newest.

    Args:
        heads: All heads of the thread, newest first.
        keep_last: How many of the newest stay, at least 1.
        before: Only records saved before this moment are deleted.

    Raises:
        InvalidArgumentError: No limit, or `keep_last` below 1.
    """
    if keep_last is None and before is None:
        raise InvalidArgumentError("prune needs keep_last, older_than or both")
    kept = 1 if keep_last is None else check_limit(keep_last, "keep_last")
    if kept < 1:
        raise InvalidArgumentError("keep_last is at least 1: the newest checkpoint stays")
    return {head.revision for head in heads[kept:] if before is None or _is_older(head, before)}


def orphans(
    heads: Sequence[RecordHead], *, stay: Collection[str], before: float | None
) -> set[int]:
    """Return the revisions of old pending writes whose checkpoints are gone; also the newest.

    Args:
        heads: All heads of the thread of pending writes.
        stay: The checkpoints that are there.
        before: Only writes saved before this moment are deleted; `None`: none.
    """
    gone = (head for head in heads if head.metadata.get("of") not in stay)
    return {head.revision for head in gone if before is not None and _is_older(head, before)}


def _is_older(head: RecordHead, before: float) -> bool:
    """Whether a record was saved before a moment, by the moment that it shows: of microseconds."""
    return timestamp(head.created_at).timestamp() < before


def kept_base(
    head: RecordHead, bases: Mapping[int, int | None], removed: Collection[int]
) -> int | None:
    """Return the nearest record that stays and that a record builds on, or `None`.

    Raises:
        CheckpointCorruptError: The records build on one another in a circle.
    """
    base = head.base
    for _ in bases:
        if base == head.revision:
            break
        if base is None or base not in removed:
            return base
        base = bases.get(base)
    raise head.corrupt("the records that it builds on form a circle")
