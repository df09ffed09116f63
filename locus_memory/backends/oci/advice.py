"""What is configured badly about a bucket of OCI Object Storage."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

from locus_memory.backends.advice import Advice, Check, by_facts, on_clock, on_plain
from locus_memory.backends.oci.connection.connection import OCIConnection

__all__ = ["advise"]

_MOST_SKEW: Final = 300.0
"""Seconds: the service refuses requests whose signed date is further off."""

_PRECISION: Final = 1.0
"""Seconds: the header `Date` has no fractions."""

_ASKED: Final = ("public_access_type", "versioning", "storage_tier", "is_read_only")
"""What is asked of a bucket."""

_CHECKS: Final = (
    Check(
        "public",
        lambda case: case["public_access_type"] not in (None, "NoPublicAccess"),
        "anybody may read the bucket ({public_access_type})",
        "set its visibility to private",
    ),
    Check(
        "versioning",
        lambda case: case["versioning"] == "Enabled",
        "versioning is on: what is deleted or overwritten stays as an older version",
        "suspend versioning, or let a lifecycle rule delete previous-object-versions",
    ),
    Check(
        "archive",
        lambda case: case["storage_tier"] == "Archive",
        "the bucket is of the tier Archive: an object is restored for an hour before a read",
        "create a bucket of the tier Standard, and copy to it with locus-memory migrate",
    ),
    Check(
        "read_only",
        lambda case: case["is_read_only"],
        "the bucket is the target of a replication, and refuses writes",
        "write to the source of the replication, or stop it",
    ),
    Check(
        "retention",
        lambda case: case["retention"],
        "the retention rule {retention} forbids to overwrite and delete objects: saves, deletions "
        "and retention fail",
        "delete the rule, or use a bucket without one",
    ),
)

_LIFECYCLE: Final = Check(
    "lifecycle",
    lambda case: _meets(case["rule"], case["prefix"]),
    "the lifecycle rule {rule.name} is to {rule.action} objects of {prefix} after "
    "{rule.time_amount} {rule.time_unit}: memories and checkpoints go with them",
    "exclude the prefix from the rule, and delete data with locus-memory retain",
)


async def advise(connection: OCIConnection) -> list[Advice]:
    """Return what is configured badly, and what to do; of what the user may not ask, nothing.

    A clock that is far off is told even though the service refuses every request.
    """
    before = time.time()
    date = await connection.date()
    host, is_encrypted = await connection.host()
    plain, remedy = [] if is_encrypted else [host], "write https:// in service_endpoint"
    found = [*([] if date is None else _on_date(date, before)), *on_plain("oci", plain, remedy)]
    if date is None or abs(date - time.time()) <= _MOST_SKEW:
        about = await connection.look()
        facts = {name: getattr(about.bucket, name, None) for name in _ASKED}
        facts["retention"] = ", ".join(str(each.display_name) for each in about.retention)
        rules = [{"rule": each, "prefix": connection.names.prefix} for each in about.lifecycle]
        found += [*by_facts("oci", _CHECKS, [facts]), *by_facts("oci", [_LIFECYCLE], rules)]
    return found


def _on_date(date: float, before: float) -> Iterator[Advice]:
    skew = abs(date - before)
    for found in on_clock("oci", max(date, min(before, date + _PRECISION)), before):
        yield (
            found
            if skew <= _MOST_SKEW
            else replace(
                found,
                finding=f"the clock here differs by {skew:.0f} seconds from that of the service, "
                "which refuses requests from 300 seconds on",
                remedy="let NTP set the clock of this machine",
            )
        )


def _meets(rule: Any, prefix: str) -> bool:
    """Return whether a rule may concern objects below a prefix; a pattern may exclude them."""
    if not rule.is_enabled or rule.target != "objects":
        return False
    wanted = rule.object_name_filter
    if wanted is None:
        return True
    excluded = wanted.exclusion_patterns or []
    if any(pattern in (f"{prefix}*", "*") for pattern in excluded):
        return False
    starts = wanted.inclusion_prefixes or []
    if not starts:
        starts = [pattern.partition("*")[0] for pattern in wanted.inclusion_patterns or [""]]
    return any(prefix.startswith(each) or each.startswith(prefix) for each in starts)
