"""What is configured badly about an Oracle Database.

Most of it is in views of the system, which not every user may read: of those, there is no advice.
"""

from __future__ import annotations

import time
from typing import Any, Final

from locus_memory.backends.advice import (
    Advice,
    Check,
    by_queries,
    on_clock,
    on_plain,
    on_version,
)
from locus_memory.backends.oracle.connection.connection import OraclePool
from locus_memory.errors import BackendError, BackendUnavailableError

__all__ = ["advise", "outdated"]

# Of Oracle's types for moments, a number alone is the same whatever the zone of the session is.
_SESSION: Final = """
SELECT (CAST(SYSTIMESTAMP AT TIME ZONE 'UTC' AS DATE) - DATE '1970-01-01') * 86400,
  SYS_CONTEXT('USERENV', 'NETWORK_PROTOCOL'), SYS_CONTEXT('USERENV', 'IP_ADDRESS'),
  SYS_CONTEXT('USERENV', 'CURRENT_SCHEMA')
FROM DUAL
"""

_SEALED: Final = frozenset({"tcps", "none"})
"""The protocols that are encrypted, or unknown."""

_TLS: Final = "connect with tcps://, and let the listener use TLS"

_OWN: Final = "TABLE_OWNER = :owner AND SUBSTR(TABLE_NAME, 1, :length) = :prefix"

_WANTED: Final = " UNION ALL ".join(
    f"SELECT '{name}' AS NAME FROM DUAL"  # noqa: S608 - constants only, here and below
    for name in (
        *("ITEMS_BY_SCOPE", "ITEMS_BY_EXPIRY", "WORDS_BY_NAME"),
        *("CHECKPOINTS_BY_BASE", "CHECKPOINTS_BY_SEQUENCE"),
    )
)
"""A query for the indexes that the tables have from the start."""

_IS_FULL: Final = "is {value:.0f}% full: writes will fail soon"
_EXTEND: Final = "extend {name}, or delete data with locus-memory retain"

# A query returns a name and perhaps a value.
_CHECKS: Final = (
    *(
        Check(
            "connections",
            f"""
            SELECT RESOURCE_NAME, LIMIT_LEFT FROM (
              SELECT RESOURCE_NAME, CASE WHEN TRIM({limit}) NOT IN ('UNLIMITED', 'DEFAULT')
                THEN CAST(TRIM({limit}) AS NUMBER) - {used} END AS LIMIT_LEFT
              FROM {view} WHERE RESOURCE_NAME IN ('sessions', 'processes', 'SESSIONS_PER_USER'))
            WHERE LIMIT_LEFT < :pool_size
            """,  # noqa: S608 - constants only, here and below
            "a pool may open {pool_size} connections in each event loop, and of {name} {value:.0f} "
            "are left",
            "lower pool_size, or raise {name}",
        )
        for view, limit, used in (
            ("V$RESOURCE_LIMIT", "LIMIT_VALUE", "CURRENT_UTILIZATION"),
            ("USER_RESOURCE_LIMITS", "LIMIT", "0"),
        )
    ),
    # Without any index, the user may not see them.
    Check(
        "index_missing",
        f"""
        SELECT W.NAME FROM ({_WANTED}) W
        WHERE EXISTS (SELECT 1 FROM ALL_INDEXES WHERE {_OWN}) AND NOT EXISTS (
          SELECT 1 FROM ALL_INDEXES WHERE {_OWN} AND INDEX_NAME = :prefix || W.NAME)
        """,  # noqa: S608
        "the index {prefix}{name} is missing: searches or deletes read whole tables",
        "create it again with the statement in locus_memory/backends/oracle/schema.py",
    ),
    Check(
        "index",
        f"""
        SELECT INDEX_NAME, STATUS FROM ALL_INDEXES
        WHERE {_OWN} AND STATUS IN ('UNUSABLE', 'INPROGRS', 'FAILED')
        """,  # noqa: S608
        "the index {name} is {value}: no query uses it, and writes may fail",
        'run ALTER INDEX "{name}" REBUILD ONLINE',
    ),
    Check(
        "index",
        f"SELECT INDEX_NAME FROM ALL_INDEXES WHERE VISIBILITY = 'INVISIBLE' AND {_OWN}",  # noqa: S608
        "the index {name} is invisible: no query uses it",
        'run ALTER INDEX "{name}" VISIBLE',
    ),
    Check(
        "statistics",
        """
        SELECT TABLE_NAME, NUM_ROWS FROM ALL_TAB_STATISTICS WHERE STALE_STATS = 'YES'
        AND OWNER = :owner AND SUBSTR(TABLE_NAME, 1, :length) = :prefix AND NUM_ROWS >= 10000
        """,
        "the statistics of {name} ({value:,.0f} rows) are stale: plans may be slow",
        "run DBMS_STATS.GATHER_TABLE_STATS(ownname, '{name}')",
    ),
    Check(
        "space",
        """
        SELECT TABLESPACE_NAME, BYTES / MAX_BYTES * 100 FROM USER_TS_QUOTAS
        WHERE MAX_BYTES > 0 AND BYTES > MAX_BYTES * 0.9
        """,
        f"the quota on the tablespace {{name}} {_IS_FULL}",
        _EXTEND,
    ),
    Check(
        "space",
        """
        SELECT M.TABLESPACE_NAME, M.USED_PERCENT FROM DBA_TABLESPACE_USAGE_METRICS M
        WHERE M.USED_PERCENT > 90 AND M.TABLESPACE_NAME IN (
          SELECT T.TABLESPACE_NAME FROM ALL_TABLES T
          WHERE T.OWNER = :owner AND SUBSTR(T.TABLE_NAME, 1, :length) = :prefix)
        """,
        f"the tablespace {{name}} {_IS_FULL}",
        _EXTEND,
    ),
)


async def advise(pool: OraclePool) -> list[Advice]:
    """Return what is configured badly, and what to do; of what the user may not read, nothing."""
    await pool.open()
    before = time.time()
    ((seconds, protocol, address, schema),) = await pool.fetch(_SESSION, {})
    prefix = pool.options.table_prefix
    ours = {
        "owner": pool.options.schema or schema,
        "prefix": prefix,
        "length": len(prefix),
        "pool_size": pool.options.pool_size,
    }

    async def ask(query: str) -> list[dict[str, Any]]:
        """Return the cases; none if the view, or a column of it, is not there for this user."""
        binds = {name: value for name, value in ours.items() if f":{name}" in query}
        try:
            rows = await pool.fetch(query, binds)
        except BackendUnavailableError:
            raise
        except BackendError:
            return []
        return [ours | dict(zip(("name", "value"), row, strict=False)) for row in rows]

    return [
        *on_clock("oracle", float(seconds), before),
        # The driver's thin mode has no other encryption than TLS.
        *on_plain("oracle", [] if str(protocol).lower() in _SEALED else [address or ""], _TLS),
        *await by_queries("oracle", _CHECKS, ask),
    ]


async def outdated(pool: OraclePool) -> list[Advice]:
    """Return advice if an earlier version of the library made the tables, which are only read."""
    return [
        each
        for found, known in await pool.versions()
        for each in on_version("oracle", f"the tables of {pool.where}", found, known)
    ]
