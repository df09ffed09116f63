"""The PostgreSQL backend."""

from locus_memory.drivers import require

require("asyncpg", "postgresql")
