"""What is configured badly about a PostgreSQL database."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any, Final

from locus_memory.backends.advice import Advice, Check, by_queries, on_clock, on_version
from locus_memory.backends.postgresql.connection.connection import PostgreSQLPool
from locus_memory.backends.postgresql.schema import MIGRATIONS

__all__ = ["advise", "outdated"]


_CLOCK: Final = "SELECT extract(epoch FROM clock_timestamp())::float8"

_OURS: Final = """any(ARRAY[
  to_regclass('{items}'), to_regclass('{vectors}'), to_regclass('{checkpoints}')])"""

# `%(size)s` is the size of a pool.
_CHECKS: Final = (
    Check(
        "unencrypted",
        """
        SELECT host(inet_server_addr()) AS host
        WHERE NOT coalesce((SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()), false)
          AND NOT inet_server_addr() <<= '127.0.0.0/8' AND inet_server_addr() <> '::1'
        """,
        "the connection to {host} is not encrypted",
        "add ?sslmode=verify-full to the URL, and set ssl = on at the server",
    ),
    Check(
        "connections",
        """
        SELECT %(size)s AS size, room, room - used AS free FROM (SELECT
          current_setting('max_connections')::int
            - current_setting('superuser_reserved_connections')::int AS room,
          (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend') AS used
        ) AS counted WHERE %(size)s > room - used
        """,
        "a pool may open {size} connections in each event loop, and the server has {free} left of "
        "{room}",
        "lower pool_size, raise max_connections, or put PgBouncer between",
    ),
    *(
        Check(
            name,
            f"SELECT WHERE current_setting('{name}') = 'off'",
            f"{name} is off: {effect}",
            f"set {name} = on",
        )
        for name, effect in (
            ("fsync", "a crash of the machine may damage the database"),
            ("full_page_writes", "a crash of the machine may damage the database"),
            ("synchronous_commit", "a crash may lose writes that were acknowledged"),
            ("autovacuum", "tables grow, and plans of queries become stale"),
        )
    ),
    Check(
        "vector",
        """
        SELECT CASE WHEN EXISTS (SELECT FROM pg_available_extensions WHERE name = 'vector')
          THEN '' ELSE 'install pgvector on the server, then ' END AS first
        WHERE to_regclass('{vectors}') IS NULL
          OR NOT EXISTS (SELECT FROM pg_extension WHERE extname = 'vector')
        """,
        "the extension vector is missing: there is no search by meaning",
        "{first}run CREATE EXTENSION vector, as a user with that right",
    ),
    Check(
        "vacuum",
        f"""
        SELECT relname, n_live_tup AS live, n_dead_tup AS dead FROM pg_stat_all_tables
        WHERE relid = {_OURS} AND n_dead_tup > 10000 AND n_dead_tup > n_live_tup * 0.5
        """,  # noqa: S608 - constants only, here and below
        "{relname} has {dead:,} dead rows beside {live:,} live ones: vacuum is behind",
        "run VACUUM (ANALYZE) {relname}, and end transactions that are open for long",
    ),
    Check(
        "analyze",
        f"""
        SELECT relname, n_live_tup AS live FROM pg_stat_all_tables
        WHERE relid = {_OURS} AND n_live_tup > 10000
          AND last_analyze IS NULL AND last_autoanalyze IS NULL
          AND NOT (n_dead_tup > 10000 AND n_dead_tup > n_live_tup * 0.5)
        """,  # noqa: S608
        "{relname} has {live:,} rows and was never analysed: plans may be slow",
        "run ANALYZE {relname}",
    ),
    # No query may use such an index, and nobody builds it at the moment.
    Check(
        "index",
        f"""
        SELECT c.relname FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indexrelid
        WHERE NOT i.indisvalid AND i.indrelid = {_OURS} AND NOT EXISTS (
          SELECT FROM pg_stat_progress_create_index AS p WHERE p.index_relid = c.oid)
        """,  # noqa: S608
        "the index {relname} is not valid: no query uses it, and each write pays for it",
        "run REINDEX INDEX CONCURRENTLY {relname}, or locus-memory compact",
    ),
)

_VERSIONS: Final = """
SELECT part, version, CASE
    WHEN pg_is_in_recovery() THEN 'open it once on the primary: this server is a standby'
    WHEN NOT coalesce((SELECT pg_has_role(relowner, 'USAGE') FROM pg_catalog.pg_class
      WHERE oid = to_regclass('{items}')), true)
    THEN 'open it once as the owner of its tables, which ' || current_user || ' is not' END
    AS remedy,
  (SELECT count(*) FROM pg_catalog.pg_stat_activity WHERE backend_type = 'client backend'
    AND datname = current_database() AND pid <> pg_backend_pid()) AS others
FROM {migrations} ORDER BY part
"""


async def advise(pool: PostgreSQLPool) -> list[Advice]:
    """Return what is configured badly, and what to do."""
    await pool.open()
    before = time.time()
    clock = on_clock("postgresql", await pool.fetchval(_CLOCK), before)

    async def ask(query: str) -> list[Any]:
        return await pool.fetch(query % {"size": pool.pool_size})

    return [*clock, *await by_queries("postgresql", _CHECKS, ask)]


async def outdated(pool: PostgreSQLPool) -> list[Advice]:
    """Return advice if an earlier version of the library made the tables, which are only read."""
    found: list[Advice] = []
    for row in await pool.peek(_VERSIONS):
        part, known = f"{row['part']} of {pool.where}", len(MIGRATIONS.get(row["part"], ()))
        for each in on_version("postgresql", part, row["version"], known):
            others = f"; {row['others']} other sessions are in this database"
            remedy = row["remedy"] or each.remedy + (others if row["others"] else "")
            found.append(replace(each, remedy=remedy))
    return found
