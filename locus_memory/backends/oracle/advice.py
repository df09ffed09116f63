"""What is configured badly about an Oracle Database.

Most of it is in views of the system, which not every user may read: of those, there is no advice.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from locus_memory.backends.advice import Advice, is_remote, on_clock, on_version
from locus_memory.backends.oracle.connection.connection import OraclePool
from locus_memory.backends.oracle.connection.driver import Binds, Row
from locus_memory.errors import BackendError, BackendUnavailableError

__all__ = ["advise", "outdated"]

# Of Oracle's types for moments, a number alone is the same whatever the zone of the session is.
_SESSION: Final = """
SELECT (CAST(SYSTIMESTAMP AT TIME ZONE 'UTC' AS DATE) - DATE '1970-01-01') * 86400,
  SYS_CONTEXT('USERENV', 'NETWORK_PROTOCOL'), SYS_CONTEXT('USERENV', 'IP_ADDRESS'),
  SYS_CONTEXT('USERENV', 'CURRENT_SCHEMA')
FROM DUAL
"""

_LIMITS: Final = """
SELECT RESOURCE_NAME, CURRENT_UTILIZATION, LIMIT_VALUE FROM V$RESOURCE_LIMIT
WHERE RESOURCE_NAME IN ('sessions', 'processes')
"""

_PROFILE: Final = """
SELECT RESOURCE_NAME, 0, LIMIT FROM USER_RESOURCE_LIMITS WHERE RESOURCE_NAME = 'SESSIONS_PER_USER'
"""

_INDEXES: Final = """
SELECT INDEX_NAME FROM ALL_INDEXES
WHERE TABLE_OWNER = :owner AND SUBSTR(TABLE_NAME, 1, :length) = :prefix
"""


class _Check(NamedTuple):
    """A query that returns a row for each case of a finding, whose columns are in the texts."""

    name: str
    query: str
    finding: str
    remedy: str


_IS_FULL: Final = "is {1:.0f}% full: writes will fail soon"
_EXTEND: Final = "extend {0}, or delete data with locus-memory retain"

_CHECKS: Final = (
    _Check(
        "index",
        """
        SELECT INDEX_NAME, STATUS FROM ALL_INDEXES
        WHERE TABLE_OWNER = :owner AND SUBSTR(TABLE_NAME, 1, :length) = :prefix
          AND STATUS IN ('UNUSABLE', 'INPROGRS', 'FAILED')
        """,
        "the index {0} is {1}: no query uses it, and writes may fail",
        'run ALTER INDEX "{0}" REBUILD ONLINE',
    ),
    _Check(
        "index",
        """
        SELECT INDEX_NAME FROM ALL_INDEXES WHERE VISIBILITY = 'INVISIBLE'
        AND TABLE_OWNER = :owner AND SUBSTR(TABLE_NAME, 1, :length) = :prefix
        """,
        "the index {0} is invisible: no query uses it",
        'run ALTER INDEX "{0}" VISIBLE',
    ),
    _Check(
        "statistics",
        """
        SELECT TABLE_NAME, NUM_ROWS FROM ALL_TAB_STATISTICS WHERE STALE_STATS = 'YES'
        AND OWNER = :owner AND SUBSTR(TABLE_NAME, 1, :length) = :prefix AND NUM_ROWS >= 10000
        """,
        "the statistics of {0} ({1:,.0f} rows) are stale: plans may be slow",
        "run DBMS_STATS.GATHER_TABLE_STATS(ownname, '{0}')",
    ),
    _Check(
        "space",
        """
        SELECT TABLESPACE_NAME, BYTES / MAX_BYTES * 100 FROM USER_TS_QUOTAS
        WHERE MAX_BYTES > 0 AND BYTES > MAX_BYTES * 0.9
        """,
        f"the quota on the tablespace {{0}} {_IS_FULL}",
        _EXTEND,
    ),
    _Check(
        "space",
        """
        SELECT M.TABLESPACE_NAME, M.USED_PERCENT FROM DBA_TABLESPACE_USAGE_METRICS M
        WHERE M.USED_PERCENT > 90 AND M.TABLESPACE_NAME IN (
          SELECT T.TABLESPACE_NAME FROM ALL_TABLES T
          WHERE T.OWNER = :owner AND SUBSTR(T.TABLE_NAME, 1, :length) = :prefix)
        """,
        f"the tablespace {{0}} {_IS_FULL}",
        _EXTEND,
    ),
)

_WANTED: Final = (
    *("ITEMS_BY_SCOPE", "ITEMS_BY_EXPIRY", "WORDS_BY_NAME"),
    *("CHECKPOINTS_BY_BASE", "CHECKPOINTS_BY_SEQUENCE"),
)
"""The indexes that the tables have from the start."""


async def advise(pool: OraclePool) -> list[Advice]:
    """Return what is configured badly, and what to do; of what the user may not read, nothing."""
    await pool.open()
    before = time.time()
    ((seconds, protocol, address, schema),) = await pool.fetch(_SESSION, {})
    prefix = pool.options.table_prefix
    ours = {"owner": pool.options.schema or schema, "prefix": prefix, "length": len(prefix)}
    limits = [*await _rows(pool, _LIMITS), *await _rows(pool, _PROFILE)]
    found = [
        *on_clock("oracle", float(seconds), before),
        *_on_protocol(protocol, address),
        *_on_sessions(limits, pool.options.pool_size),
        *_on_missing(await _rows(pool, _INDEXES, ours), prefix),
    ]
    for name, query, finding, remedy in _CHECKS:
        rows = await _rows(pool, query, ours if ":owner" in query else None)
        found += [Advice(f"oracle.{name}", finding.format(*r), remedy.format(*r)) for r in rows]
    return found


async def outdated(pool: OraclePool) -> list[Advice]:
    """Return advice if an earlier version of the library made the tables, which are only read."""
    return [
        each
        for found, known in await pool.versions()
        for each in on_version("oracle", f"the tables of {pool.where}", found, known)
    ]


async def _rows(pool: OraclePool, query: str, binds: Binds | None = None) -> list[Row]:
    """Return the rows of a view of the system; none if the user may not read it."""
    try:
        return await pool.fetch(query, binds or {})
    except BackendUnavailableError:
        raise
    except BackendError:
        # The view, or a column of it, is not there for this user or in this release.
        return []


def _on_protocol(protocol: str | None, address: str | None) -> Iterator[Advice]:
    # The driver's thin mode has no other encryption than TLS.
    if protocol and protocol.lower() != "tcps" and is_remote(address or ""):
        yield Advice(
            "oracle.unencrypted",
            f"the connection is not encrypted ({protocol}, from {address})",
            "connect with tcps://, and let the listener use TLS",
        )


def _on_sessions(limits: Sequence[Row], pool_size: int) -> Iterator[Advice]:
    for name, used, limit in limits:
        text = str(limit).strip()
        left = int(text) - int(used) if text.isdigit() else None
        if left is not None and pool_size > left:
            yield Advice(
                "oracle.connections",
                f"a pool may open {pool_size} connections in each event loop, and of {name} "
                f"{max(left, 0)} of {text} are left",
                f"lower pool_size, or raise {name}",
            )


def _on_missing(indexes: Sequence[Row], prefix: str) -> Iterator[Advice]:
    names = {str(row[0]) for row in indexes}
    # Without any, the user may not see them.
    for name in _WANTED if names else ():
        if prefix + name not in names:
            yield Advice(
                "oracle.index_missing",
                f"the index {prefix}{name} is missing: searches or deletes read whole tables",
                "create it again with the statement in locus_memory/backends/oracle/schema.py",
            )
