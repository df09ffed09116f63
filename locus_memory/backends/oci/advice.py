"""What is configured badly about a bucket of OCI Object Storage."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any, Final

from locus_memory.backends.advice import Advice, is_remote, on_clock
from locus_memory.backends.oci.connection.connection import OCIConnection
from locus_memory.backends.oci.connection.driver import About

__all__ = ["advise"]

_MOST_SKEW: Final = 300.0
"""Seconds: the service refuses requests whose signed date is further off."""

_PRECISION: Final = 1.0
"""Seconds: the header `Date` has no fractions."""


Row = tuple[bool, str, str, str]
"""Whether there is something to tell; then the name of the advice, the problem and the remedy."""


async def advise(connection: OCIConnection) -> list[Advice]:
    """Return what is configured badly, and what to do; of what the user may not ask, nothing.

    A clock that is far off is told even though the service refuses every request.
    """
    before = time.time()
    date = await connection.date()
    host, is_encrypted = await connection.host()
    rows: list[Row] = [
        (
            is_remote(host) and not is_encrypted,
            "unencrypted",
            f"the connection to {host} is not encrypted",
            "write https:// in service_endpoint",
        )
    ]
    if date is None or abs(date - time.time()) <= _MOST_SKEW:
        about = await connection.look()
        rows += [*_on_bucket(about.bucket), *_on_rules(about, connection.names.prefix)]
    found = [] if date is None else list(_on_date(date, before))
    return found + [
        Advice(f"oci.{name}", problem, remedy) for is_bad, name, problem, remedy in rows if is_bad
    ]


def _on_date(date: float, before: float) -> Iterator[Advice]:
    for found in on_clock("oci", max(date, min(before, date + _PRECISION)), before):
        if abs(date - before) <= _MOST_SKEW:
            yield found
            continue
        yield Advice(
            found.name,
            f"the clock here differs by {abs(date - before):.0f} seconds from that of the "
            "service, which refuses requests from 300 seconds on",
            "let NTP set the clock of this machine",
        )


def _on_bucket(bucket: Any) -> list[Row]:
    if bucket is None:
        return []
    return [
        (
            bucket.public_access_type not in (None, "NoPublicAccess"),
            "public",
            f"anybody may read the bucket ({bucket.public_access_type})",
            "set its visibility to private",
        ),
        (
            bucket.versioning == "Enabled",
            "versioning",
            "versioning is on: what is deleted or overwritten stays as an older version",
            "suspend versioning, or let a lifecycle rule delete previous-object-versions",
        ),
        (
            bucket.storage_tier == "Archive",
            "archive",
            "the bucket is of the tier Archive: an object is restored for an hour before a read",
            "create a bucket of the tier Standard, and copy to it with locus-memory migrate",
        ),
        (
            bool(bucket.is_read_only),
            "read_only",
            "the bucket is the target of a replication, and refuses writes",
            "write to the source of the replication, or stop it",
        ),
    ]


def _on_rules(about: About, prefix: str) -> list[Row]:
    names = ", ".join(str(each.display_name) for each in about.retention)
    return [
        (
            bool(about.retention),
            "retention",
            (
                f"the retention rule {names} forbids to overwrite and delete objects: saves, "
                "deletions and retention fail"
            ),
            "delete the rule, or use a bucket without one",
        ),
        *(
            (
                bool(rule.is_enabled) and rule.target == "objects" and _meets(rule, prefix),
                "lifecycle",
                (
                    f"the lifecycle rule {rule.name} is to {rule.action} objects of {prefix} after "
                    f"{rule.time_amount} {rule.time_unit}: memories and checkpoints go with them"
                ),
                "exclude the prefix from the rule, and delete data with locus-memory retain",
            )
            for rule in about.lifecycle
        ),
    ]


def _meets(rule: Any, prefix: str) -> bool:
    """Return whether a rule may concern objects below a prefix; a pattern may exclude them."""
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
