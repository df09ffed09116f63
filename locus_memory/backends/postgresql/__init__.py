"""The PostgreSQL backend."""

from locus_memory.backends.postgresql.connection import PostgreSQLPool

__all__ = ["PostgreSQLPool"]
