"""The PostgreSQL backend."""

from locus_memory.backends.postgresql.connection import PostgreSQLPool
from locus_memory.backends.postgresql.store import PostgreSQLStore

__all__ = ["PostgreSQLPool", "PostgreSQLStore"]
