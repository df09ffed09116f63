"""What is configured badly about a PostgreSQL database."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from locus_memory.backends.advice import Advice, is_remote, on_clock, on_version
from locus_memory.backends.postgresql.connection.connection import PostgreSQLPool
from locus_memory.backends.postgresql.connection.driver import Record
from locus_memory.backends.postgresql.schema import MIGRATIONS

__all__ = ["advise", "outdated"]

_SERVER: Final = """
SELECT extract(epoch FROM clock_timestamp())::float8 AS clock,
  coalesce(host(inet_server_addr()), '') AS host,
  coalesce((SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()), false) AS ssl,
  current_setting('fsync') AS fsync, current_setting('full_page_writes') AS full_page_writes,
  current_setting('synchronous_commit') AS synchronous_commit,
  current_setting('autovacuum') AS autovacuum,
  current_setting('max_connections')::int
    - current_setting('superuser_reserved_connections')::int AS room,
  (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend') AS used,
  EXISTS (SELECT FROM pg_available_extensions WHERE name = 'vector') AS available
"""

_TABLES: Final = """
SELECT relname, n_live_tup AS live, n_dead_tup AS dead,
  last_analyze IS NULL AND last_autoanalyze IS NULL AS unknown
FROM pg_stat_all_tables WHERE relid = any(ARRAY[
  to_regclass('{items}'), to_regclass('{vectors}'), to_regclass('{checkpoints}')])
"""

_BROKEN: Final = """
SELECT c.relname FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indexrelid
WHERE NOT i.indisvalid AND i.indrelid = any(ARRAY[
  to_regclass('{items}'), to_regclass('{vectors}'), to_regclass('{checkpoints}')])
  AND NOT EXISTS (SELECT FROM pg_stat_progress_create_index AS p WHERE p.index_relid = c.oid)
"""
"""Indexes that nobody builds at the moment, and no query may use."""

_VERSIONS: Final = """
SELECT part, version, pg_is_in_recovery() AS is_standby, current_user::text AS role,
  coalesce((SELECT pg_has_role(relowner, 'USAGE') FROM pg_catalog.pg_class
    WHERE oid = to_regclass('{items}')), true) AS is_owner,
  (SELECT count(*) FROM pg_catalog.pg_stat_activity WHERE backend_type = 'client backend'
    AND datname = current_database() AND pid <> pg_backend_pid()) AS others
FROM {migrations} ORDER BY part
"""

_LEAST_DEAD: Final = 10_000
_MOST_DEAD: Final = 0.5
_LEAST_ROWS: Final = 10_000


async def advise(pool: PostgreSQLPool) -> list[Advice]:
    """Return what is configured badly, and what to do."""
    await pool.open()
    before = time.time()
    server = await pool.fetchrow(_SERVER)
    if server is None:
        return []
    tables = await pool.fetch(_TABLES)
    broken = await pool.fetch(_BROKEN)
    return [
        *on_clock("postgresql", server["clock"], before),
        *_on_connection(server, pool.pool_size),
        *_on_safety(server),
        *_on_vectors(server, has_vector=pool.features.has_vector),
        *(each for table in tables for each in _on_table(table)),
        *(_on_index(row["relname"]) for row in broken),
    ]


async def outdated(pool: PostgreSQLPool) -> list[Advice]:
    """Return advice if an earlier version of the library made the tables, which are only read."""
    return [each for row in await pool.peek(_VERSIONS) for each in _on_part(row, pool.where)]


def _on_part(row: Record, where: str) -> Iterator[Advice]:
    part, known = row["part"], MIGRATIONS.get(row["part"], ())
    for found in on_version("postgresql", f"{part} of {where}", row["version"], len(known)):
        if row["is_standby"]:
            yield replace(found, remedy="open it once on the primary: this server is a standby")
        elif not row["is_owner"]:
            remedy = f"open it once as the owner of its tables, which {row['role']} is not"
            yield replace(found, remedy=remedy)
        elif row["others"]:
            remedy = f"{found.remedy}; {row['others']} other sessions are in this database"
            yield replace(found, remedy=remedy)
        else:
            yield found


def _on_connection(server: Record, pool_size: int) -> Iterator[Advice]:
    if is_remote(server["host"]) and not server["ssl"]:
        yield Advice(
            "postgresql.unencrypted",
            f"the connection to {server['host']} is not encrypted",
            "add ?sslmode=verify-full to the URL, and set ssl = on at the server",
        )
    left = server["room"] - server["used"]
    if pool_size > left:
        yield Advice(
            "postgresql.connections",
            f"a pool may open {pool_size} connections in each event loop, and the server has "
            f"{left} left of {server['room']}",
            "lower pool_size, raise max_connections, or put PgBouncer between",
        )


def _on_safety(server: Record) -> Iterator[Advice]:
    for name in ("fsync", "full_page_writes"):
        if server[name] == "off":
            yield Advice(
                f"postgresql.{name}",
                f"{name} is off: a crash of the machine may damage the database",
                f"set {name} = on",
            )
    if server["synchronous_commit"] == "off":
        yield Advice(
            "postgresql.synchronous_commit",
            "synchronous_commit is off: a crash may lose writes that were acknowledged",
            "set synchronous_commit = on",
        )
    if server["autovacuum"] == "off":
        yield Advice(
            "postgresql.autovacuum",
            "autovacuum is off: tables grow, and plans of queries become stale",
            "set autovacuum = on",
        )


def _on_vectors(server: Record, *, has_vector: bool) -> Iterator[Advice]:
    if not has_vector:
        first = "" if server["available"] else "install pgvector on the server, then "
        yield Advice(
            "postgresql.vector",
            "the extension vector is missing: there is no search by meaning",
            f"{first}run CREATE EXTENSION vector, as a user with that right",
        )


def _on_table(table: Record) -> Iterator[Advice]:
    name, live, dead = table["relname"], table["live"], table["dead"]
    if dead > _LEAST_DEAD and dead > live * _MOST_DEAD:
        yield Advice(
            "postgresql.vacuum",
            f"{name} has {dead:,} dead rows beside {live:,} live ones: vacuum is behind",
            f"run VACUUM (ANALYZE) {name}, and end transactions that are open for long",
        )
    elif table["unknown"] and live > _LEAST_ROWS:
        yield Advice(
            "postgresql.analyze",
            f"{name} has {live:,} rows and was never analysed: plans may be slow",
            f"run ANALYZE {name}",
        )


def _on_index(name: str) -> Advice:
    return Advice(
        "postgresql.index",
        f"the index {name} is not valid: no query uses it, and each write pays for it",
        f"run REINDEX INDEX CONCURRENTLY {name}, or locus-memory compact",
    )
