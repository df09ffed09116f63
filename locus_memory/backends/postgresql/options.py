"""The options of the connections to PostgreSQL, in one frozen value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypedDict

from locus_memory._internal.options import check_fields, check_ranges
from locus_memory.backends.postgresql.schema import Names

__all__ = ["PostgreSQLKeywords", "PostgreSQLOptions"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PostgreSQLOptions:
    """How to connect to a PostgreSQL database, and where the tables are.

    Attributes:
        pool_size: How many connections an event loop opens at most.
        schema: The schema of the tables; made if it is not there.
        table_prefix: What the names of tables and indexes begin with.
        statement_cache_size: How many prepared statements a connection keeps.
        pooler: Whether a pooler in transaction mode is in between, such as PgBouncer: then
            no prepared statement outlives its transaction.
        standby_reads: Whether the reads of the store may go to standbys; they see all that was
            written through the same pool. Needs a URL with several hosts.
        connect_timeout: Seconds to open a connection; of several hosts, each has its part of them.
        acquire_timeout: Seconds to wait for a connection that is free.
        command_timeout: Seconds for a statement; `None`: no limit.

    Raises:
        ConfigurationError: An option that cannot work.
    """

    pool_size: int = 16
    schema: str = "public"
    table_prefix: str = "locus_"
    statement_cache_size: int = 256
    pooler: bool = False
    standby_reads: bool = False
    connect_timeout: float = 10.0
    acquire_timeout: float = 30.0
    command_timeout: float | None = 60.0

    def __post_init__(self) -> None:
        check_fields(self)
        Names(self.schema, self.table_prefix).check()
        seconds = ("connect_timeout", "acquire_timeout", "command_timeout")
        least = {"pool_size": 1, "statement_cache_size": 0}
        check_ranges("postgresql", self, least, positive=seconds)


class PostgreSQLKeywords(TypedDict, total=False):
    """The same options by name."""

    pool_size: int
    schema: str
    table_prefix: str
    statement_cache_size: int
    pooler: bool
    standby_reads: bool
    connect_timeout: float
    acquire_timeout: float
    command_timeout: float | None
