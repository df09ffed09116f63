"""Which version of a memory counts at an earlier moment: pure, from all versions of its key."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime
from operator import itemgetter

from locus_memory.memory.ledger.revision import current_again, known
from locus_memory.memory.ledger.wording import ended_by, ending_of
from locus_memory.memory.models import Memory
from locus_memory.memory.moments import read_moment
from locus_memory.memory.validity import Then, said_at, stated

__all__ = ["version_at"]


def version_at(versions: Iterable[Memory], then: Then) -> Memory | None:
    """Return the version of a memory that counts at a moment; `None` if none does.

    With `as_of`, the versions are as the ledger knew them at that moment, and what was undone later
    is among them. Without `at`, the version counts that was current. With it, the one counts that
    was true: of those that had begun, the one that was said last, unless it was deleted. One that
    is over by its `valid_to` hides what began before its end, and not what began later. A change
    that was undone counts as never made.

    Args:
        versions: All versions of one key, in any order.
        then: The moment.
    """
    told = list(versions)
    if then.as_of is not None:
        told = [each for one in told if (each := _as_of(one, then.as_of)) is not None]
    if then.at is None:
        return next((each for each in told if "superseded_at" not in each.metadata), None)
    numbers = {each.metadata.get("sequence") for each in told}
    begun = [
        (said_at(each), each.metadata.get("sequence") or 0, each)
        for each in told
        if ending_of(each) != "undo" and then.has_begun(said_at(each), stated(each))
    ]
    begun.sort(key=itemgetter(0, 1))
    last = begun.pop()[2] if begun else None
    while last is not None and not then.is_true(said_at(last), stated(last)):
        end = then.end(stated(last))
        begun = [each for each in begun if then.start(each[0], stated(each[2])) >= end]
        last = begun.pop()[2] if begun else None
    if last is None:
        return None
    # No version has the number 0.
    is_replaced = ended_by(last).get("sequence", 0) in numbers
    gone = None if is_replaced else read_moment(last.metadata.get("superseded_at"))
    return last if gone is None or then.at < gone else None


def _as_of(version: Memory, moment: datetime) -> Memory | None:
    """Return a version as it was known at a moment; `None`: it was not."""
    marks = known(version)
    passed = [each for each in marks if (at := read_moment(each)) is not None and at <= moment]
    if len(passed) % 2:
        return current_again(version)
    if passed and passed != marks:
        ends = {"superseded_at": passed[-1], "superseded_by": {"change": "delete"}}
        return replace(version, metadata=version.metadata | ends)
    return version if passed else None
