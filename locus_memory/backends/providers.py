"""The one table of providers: the classes for the first word of a provider string.

A class is named here and imported at its first use, so no driver is loaded before. The provider
`memory` is the folder `inmemory`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

__all__ = ["PROVIDERS", "Provider"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """The classes of a provider, and the parameter for its hint.

    Attributes:
        store: Its `BaseStore` as `"module:Class"`, or `None`.
        checkpointer: Its `BaseCheckpointer` as `"module:Class"`, or `None`.
        backend: Its `Backend` as `"module:Class"`; `None` composes one of the other two. It
            takes the mappings `store_options` and `checkpointer_options`, as far as it has both.
        parameter: The parameter for the hint; `None` if it takes no hint.
        default: The hint if none is given; `None` leaves it to the class.
        is_path: The hint is a path, and a URL `scheme:///path` means that path.
        suffixes: The ends of paths that mean this provider without its name.
        schemes: More URL schemes that mean this provider.
        extra: The extra of locus-memory that installs its driver, if it needs one.
    """

    store: str | None = None
    checkpointer: str | None = None
    backend: str | None = None
    parameter: str | None = None
    default: str | None = None
    is_path: bool = False
    suffixes: tuple[str, ...] = ()
    schemes: tuple[str, ...] = ()
    extra: str | None = None


PROVIDERS: Final[Mapping[str, Provider]] = {
    "memory": Provider(
        store="locus_memory.backends.inmemory.store:InMemoryStore",
        checkpointer="locus_memory.backends.inmemory.checkpoints:MemoryCheckpointer",
        backend="locus_memory.backends.inmemory.backend:InMemoryBackend",
    ),
    "file": Provider(
        checkpointer="locus_memory.backends.file.checkpoints:FileCheckpointer",
        backend="locus_memory.backends.file.backend:FileBackend",
        parameter="base_dir",
        default="./checkpoints",
        is_path=True,
    ),
    "sqlite": Provider(
        store="locus_memory.backends.sqlite.store:SQLiteStore",
        checkpointer="locus_memory.backends.sqlite.checkpoints:SQLiteCheckpointer",
        backend="locus_memory.backends.sqlite.backend:SQLiteBackend",
        parameter="path",
        default="./locus.db",
        is_path=True,
        suffixes=(".db", ".sqlite", ".sqlite3"),
    ),
    "postgresql": Provider(
        store="locus_memory.backends.postgresql.store:PostgreSQLStore",
        checkpointer="locus_memory.backends.postgresql.checkpoints:PostgreSQLCheckpointer",
        backend="locus_memory.backends.postgresql.backend:PostgreSQLBackend",
        parameter="database",
        schemes=("postgres",),
        extra="postgresql",
    ),
    "redis": Provider(
        store="locus_memory.backends.redis.store:RedisStore",
        checkpointer="locus_memory.backends.redis.checkpoints:RedisCheckpointer",
        backend="locus_memory.backends.redis.backend:RedisBackend",
        parameter="url",
        schemes=(
            *("rediss", "valkey", "valkeys"),
            *("redis+cluster", "rediss+cluster", "valkey+cluster", "valkeys+cluster"),
            *("redis+sentinel", "rediss+sentinel", "valkey+sentinel", "valkeys+sentinel"),
        ),
        extra="redis",
    ),
    "opensearch": Provider(
        store="locus_memory.backends.opensearch.store:OpenSearchStore",
        checkpointer="locus_memory.backends.opensearch.checkpoints:OpenSearchCheckpointer",
        backend="locus_memory.backends.opensearch.backend:OpenSearchBackend",
        parameter="hosts",
        extra="opensearch",
    ),
    "oci": Provider(
        store="locus_memory.backends.oci.store:OCIStore",
        checkpointer="locus_memory.backends.oci.checkpoints:OCICheckpointer",
        backend="locus_memory.backends.oci.backend:OCIBackend",
        parameter="bucket",
        extra="oci",
    ),
    "oracle": Provider(
        store="locus_memory.backends.oracle.store:OracleStore",
        checkpointer="locus_memory.backends.oracle.checkpoints:OracleCheckpointer",
        backend="locus_memory.backends.oracle.backend:OracleBackend",
        parameter="dsn",
        extra="oracle",
    ),
}
