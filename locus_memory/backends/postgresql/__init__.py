"""The PostgreSQL backend."""

from locus_memory._internal.providers.drivers import require

require("asyncpg", "postgresql")
