"""The options of the connections to Oracle Database, in one frozen value."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, TypedDict

from locus_memory._internal.options import check_fields
from locus_memory.backends.oracle.schema import Names
from locus_memory.errors import ConfigurationError

__all__ = ["MOST_DIMENSIONS", "OracleKeywords", "OracleOptions"]

MOST_DIMENSIONS: Final = 65_535
"""The longest vector of the database."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OracleOptions:
    """How to connect to an Oracle Database, and where the tables are.

    Attributes:
        user: The user, unless the address names one.
        password: Its password, unless the address has one; never shown.
        config_dir: The folder of `tnsnames.ora`; `None`: that of the variable `TNS_ADMIN`.
        wallet_location: The folder of the wallet `ewallet.pem`.
        wallet_password: The password of the wallet; never shown.
        edition: The edition of the sessions; `None`: the database's default.
        vector_dimension: The length of all vectors of these tables; `None`: any. It is fixed when
            the tables are created.
        vector_index: `"hnsw"` or `"ivf"`, an index of all vectors, which needs
            `vector_dimension`; `None`: none, and every vector search is exact.
        text_index: `"words"`, a table of words that works in every database, or `"context"`, an
            index of Oracle Text. It is fixed when the tables are created.
        pool_size: How many connections an event loop opens at most.
        schema: The schema of the tables, in upper case; `None`: that of the user. It must exist.
        table_prefix: What the names of tables and indexes begin with, in upper case.
        connect_timeout: Seconds to reach the host.
        acquire_timeout: Seconds to wait for a connection that is free.
        call_timeout: Seconds for a round trip; `None`: no limit.

    Raises:
        ConfigurationError: An option that cannot work.
    """

    user: str | None = None
    password: str | None = field(default=None, repr=False)
    config_dir: str | None = None
    wallet_location: str | None = None
    wallet_password: str | None = field(default=None, repr=False)
    edition: str | None = None
    pool_size: int = 8
    schema: str | None = None
    table_prefix: str = "LOCUS_"
    vector_dimension: int | None = None
    vector_index: str | None = None
    text_index: str = "words"
    connect_timeout: float = 10.0
    acquire_timeout: float = 30.0
    call_timeout: float | None = 60.0

    def __post_init__(self) -> None:
        check_fields(self)
        Names(self.schema, self.table_prefix).check()
        if self.pool_size < 1:
            raise ConfigurationError("oracle: needs pool_size >= 1")
        self._check_indexes()
        seconds = (self.connect_timeout, self.acquire_timeout, self.call_timeout)
        if any(each is not None and each <= 0 for each in seconds):
            raise ConfigurationError("oracle: a timeout is a positive number of seconds")

    def _check_indexes(self) -> None:
        if self.vector_index not in ("hnsw", "ivf", None):
            raise ConfigurationError("oracle: vector_index is 'hnsw', 'ivf' or None")
        if self.text_index not in ("words", "context"):
            raise ConfigurationError("oracle: text_index is 'words' or 'context'")
        if self.vector_dimension is not None and not 1 <= self.vector_dimension <= MOST_DIMENSIONS:
            raise ConfigurationError(
                f"oracle: vector_dimension is from 1 to {MOST_DIMENSIONS:,}, or None"
            )
        if self.vector_index is not None and self.vector_dimension is None:
            raise ConfigurationError(
                "oracle: an index needs vectors of one length: pass vector_dimension as well"
            )


class OracleKeywords(TypedDict, total=False):
    """The same options by name."""

    user: str | None
    password: str | None
    config_dir: str | None
    wallet_location: str | None
    wallet_password: str | None
    edition: str | None
    pool_size: int
    schema: str | None
    table_prefix: str
    vector_dimension: int | None
    vector_index: str | None
    text_index: str
    connect_timeout: float
    acquire_timeout: float
    call_timeout: float | None
