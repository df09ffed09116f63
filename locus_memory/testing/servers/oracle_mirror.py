"""The process of `OracleServer`: seerdb's Mirror, which speaks Oracle's protocol.

Run as `python oracle_mirror.py CONNINFO PORT PASSWORD RELEASE`. The Mirror translates Oracle's SQL
to that of PostgreSQL. It passes some of Oracle's spellings on as they are: they are rewritten here.
And it would execute words that only PostgreSQL has: they are refused here.
"""

from __future__ import annotations

import re
import socket
import sys
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from typing import Any, Final

__all__ = ["REFUSED", "to_mirror"]

REFUSED: Final = re.compile(
    r"\bLIMIT\s+[:\d]|\bON\s+CONFLICT\b|\bILIKE\b|::\s*[A-Za-z]", re.IGNORECASE
)
"""Words of PostgreSQL that Oracle does not have."""

_REWRITTEN: Final = (
    (r"\bFETCH\s+(?:EXACT|APPROX(?:IMATE)?)\s+(FIRST|NEXT)\b", r"FETCH \1"),
    (r"(?<!\s)\s+WITH\s+TARGET\s+ACCURACY\s+\d+(?=\s*$)", ""),
    (
        (
            r"\bJSON_EXISTS\s*\(\s*([\w.\"]+)(?:\s+FORMAT\s+JSON)?\s*,\s*('(?:[^']|'')*')\s+"
            r"PASSING\s+(:\w+)\s+AS\s+\"(\w+)\"\s*\)"
        ),
        r"oracle.json_holds(\1, \2, '\4', \3)",
    ),
    (
        (
            r"^\s*CREATE\s+VECTOR\s+INDEX\s+([\w.\"]+)\s+ON\s+([\w.\"]+)\s*\(\s*([\w\"]+)\s*\)"
            r"\s+ORGANIZATION\b.*\bDISTANCE\s+COSINE\b.*$"
        ),
        r"CREATE INDEX \1 ON \2 ((\3 IS NULL))",
    ),
    (r"\bIS\s+JSON\s+FORMAT\s+JSON\b", "IS JSON"),
    # The Mirror knows the pseudo-column of a sequence only without quotes.
    (r"((?:\"\w+\"\.)?\"\w+\")\.NEXTVAL\b", r"nextval('\1')"),
    # Each session of PostgreSQL has a cache of its own, and so numbers in no order.
    (r"(?<!\s)\s+CACHE\s+\d+\s+ORDER\b", ""),
    # A common table expression with a column list may refer to itself.
    (r"\bWITH\s+(\w+\s*\((?:\w+,\s*)*\w+\)\s+AS\b)", r"WITH RECURSIVE \1"),
)
_REWRITES: Final = [
    (re.compile(pattern, re.IGNORECASE | re.DOTALL), put) for pattern, put in _REWRITTEN
]

_ABORTED: Final = "Pipeline, Aborted due to abort on error settings in pipeline mode"

# The functions of the extension orafce that the Mirror needs, in plain SQL.
_SHIM: Final = """
CREATE SCHEMA oracle;
CREATE DOMAIN oracle.date AS timestamp(0);
CREATE DOMAIN oracle.number AS numeric;
CREATE VIEW oracle.dual AS SELECT 'X'::varchar AS dummy;
GRANT USAGE ON SCHEMA oracle TO public;
GRANT SELECT ON oracle.dual TO public;
CREATE FUNCTION oracle.to_date(text, text) RETURNS oracle.date LANGUAGE sql STABLE STRICT
  AS 'SELECT pg_catalog.to_timestamp($1, $2)::timestamp(0)';
CREATE FUNCTION oracle.trunc(timestamp) RETURNS timestamp LANGUAGE sql IMMUTABLE STRICT
  AS 'SELECT date_trunc(''day'', $1)';
CREATE FUNCTION oracle.trunc(timestamp, text) RETURNS timestamp LANGUAGE sql IMMUTABLE STRICT
  AS 'SELECT date_trunc(''day'', $1)';
CREATE FUNCTION oracle.round(timestamp) RETURNS timestamp LANGUAGE sql IMMUTABLE STRICT
  AS 'SELECT date_trunc(''day'', $1 + interval ''12 hours'')';
CREATE FUNCTION oracle.round(timestamp, text) RETURNS timestamp LANGUAGE sql IMMUTABLE STRICT
  AS 'SELECT date_trunc(''day'', $1 + interval ''12 hours'')';
CREATE FUNCTION oracle.add_months(pg_catalog.date, integer) RETURNS pg_catalog.date
  LANGUAGE sql IMMUTABLE STRICT AS 'SELECT ($1 + make_interval(months => $2))::pg_catalog.date';
CREATE FUNCTION oracle.last_day(pg_catalog.date) RETURNS pg_catalog.date
  LANGUAGE sql IMMUTABLE STRICT
  AS 'SELECT (date_trunc(''month'', $1) + interval ''1 month - 1 day'')::pg_catalog.date';
CREATE FUNCTION oracle.next_day(pg_catalog.date, text) RETURNS pg_catalog.date
  LANGUAGE sql IMMUTABLE STRICT AS 'SELECT $1 + 7';
CREATE FUNCTION oracle.next_day(pg_catalog.date, integer) RETURNS pg_catalog.date
  LANGUAGE sql IMMUTABLE STRICT AS 'SELECT $1 + 7';
CREATE FUNCTION oracle.nvl(anyelement, anyelement) RETURNS anyelement LANGUAGE sql IMMUTABLE
  AS 'SELECT coalesce($1, $2)';
CREATE FUNCTION oracle.json_holds(jsonb, jsonpath, text, text) RETURNS boolean
  LANGUAGE sql IMMUTABLE
  AS 'SELECT coalesce(jsonb_path_exists($1, $2, jsonb_build_object($3, $4), true), false)';
CREATE FUNCTION oracle.json_holds(bytea, jsonpath, text, text) RETURNS boolean
  LANGUAGE sql IMMUTABLE
  AS 'SELECT oracle.json_holds(convert_from($1, ''UTF8'')::jsonb, $2, $3, $4)';
"""


def to_mirror(statement: str) -> str:
    """Return a statement of Oracle in the spelling that the Mirror takes."""
    for pattern, put in _REWRITES:
        statement = pattern.sub(put, statement)
    merge = re.match(r"\s*MERGE\s+INTO\s+[\w.\"]+\s+(\w+)\s+USING\b", statement, re.IGNORECASE)
    if merge:
        # Oracle takes an alias before the column that is set, PostgreSQL does not.
        statement = re.sub(rf"(\bSET\s+|,\s*){merge[1]}\.(\"\w+\"\s*=)", r"\1\2", statement)
    return statement


def _backend(conninfo: str, password: str, release: str) -> Callable[[], Any]:
    """Return a factory of the sessions of the Mirror."""
    server = import_module("seerdb.server")
    base: Any = import_module("seerdb.server.backends.postgres").PostgresBackend

    def taking(name: str) -> Callable[..., Any]:
        def method(self: Any, sql: str, *arguments: Any, **options: Any) -> Any:
            if REFUSED.search(sql):
                raise server.BackendError("SQL command not properly ended", ora_code=933)
            try:
                return getattr(base, name)(self, to_mirror(sql), *arguments, **options)
            except server.BackendError as error:
                self.failed = True
                if "deadlock detected" in str(error):
                    raise server.BackendError("deadlock detected", ora_code=60) from None
                raise

        return method

    def commit(self: Any) -> None:
        if self.failed and self.pipelined:
            raise server.BackendError(_ABORTED, ora_code=43610)
        base.commit(self)

    verbs = (
        *("parse", "execute", "execute_returning"),
        *("execute_many", "execute_many_rowcounts"),
    )
    own: dict[str, Any] = {verb: taking(verb) for verb in verbs}
    backend = type(
        "Backend", (base,), own | {"commit": commit, "failed": False, "pipelined": False}
    )
    return lambda: backend(conninfo, credentials={"LOCUS": password}, presents=release)


def _correct_session() -> None:
    """Make the Mirror answer as Oracle does.

    A pipeline ends at its first error, as the driver asks: the Mirror goes on, and would commit a
    half of what the pipeline was to write.
    """
    session: Any = import_module("seerdb.server.session")
    answer_query = session._answer_query  # noqa: SLF001 - the Mirror has no hook

    def answer(stream: Any, backend: Any, request: Any, cursors: Any, *rest: Any) -> Any:
        if (
            request.cursor
            and not request.sql
            and not cursors.has(request.cursor)
            and cursors.dml_sql(request.cursor) is None
        ):
            # It would answer a query with LOBs wrongly after the cursor has found no rows. After
            # this error the driver sends the whole statement.
            error = session.encode_error(1007, "ORA-01007: variable not in select list")
            stream.write_packet(session.TNS_DATA, error)
            return []
        token, inner = stream.response_token, backend._backend  # noqa: SLF001 - as above
        inner.pipelined = token is not None
        if token in (None, 1):
            inner.failed = False
        elif inner.failed:
            error = session.encode_error(43610, f"ORA-43610: {_ABORTED}")
            stream.write_packet(session.TNS_DATA, error)
            return []
        return answer_query(stream, backend, request, cursors, *rest)

    session._answer_query = answer  # noqa: SLF001 - as above


def _server() -> Any:
    """Return the class of the Mirror, whose answers are sent at once."""
    base: Any = import_module("seerdb.server").Server

    def handle(self: Any, client: socket.socket, address: Any) -> None:
        # The answers to a pipeline would wait 40 ms for each other.
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        base._handle(self, client, address)  # noqa: SLF001 - the Mirror has no hook

    return type("Server", (base,), {"_handle": handle})


def _prepare(conninfo: str) -> None:
    with import_module("psycopg").connect(conninfo, autocommit=True) as connection:
        connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
        (there,) = connection.execute("SELECT to_regnamespace('oracle') IS NOT NULL").fetchone()
        if not there:
            with connection.transaction():
                connection.execute(_SHIM)


def _add_19c() -> None:
    """Let the Mirror present 19c: the protocol of 12.1, which has no pipelines, by another name."""
    postgres: Any = import_module("seerdb.server.backends.postgres")
    versions, identity = postgres._PRESENTABLE["12.1"]  # noqa: SLF001 - the Mirror has no hook
    banner = b"Oracle Database 19c Enterprise Edition Release 19.3.0.0.0 - Production"
    own = replace(identity, version_no=19 << 24 | 3 << 20, banner=banner)
    postgres._PRESENTABLE["19c"] = versions, own  # noqa: SLF001 - as above


def _main(conninfo: str, port: str, password: str, release: str) -> None:
    _prepare(conninfo)
    _correct_session()
    _add_19c()
    factory = _backend(conninfo, password, release)
    _server()("127.0.0.1", int(port), backend_factory=factory).serve_forever()


if __name__ == "__main__":
    _main(*sys.argv[1:])
