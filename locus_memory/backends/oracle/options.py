"""The options of the connections to Oracle Database, in one frozen value."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Literal, TypedDict

from locus_memory._internal.options import check_fields, check_ranges
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
    vector_index: Literal["hnsw", "ivf"] | None = None
    text_index: Literal["words", "context"] = "words"
    connect_timeout: float = 10.0
    acquire_timeout: float = 30.0
    call_timeout: float | None = 60.0

    def __post_init__(self) -> None:
        check_fields(self)
        Names(self.schema, self.table_prefix).check()
        seconds = ("connect_timeout", "acquire_timeout", "call_timeout")
        choices = {"vector_index": ("hnsw", "ivf", None), "text_index": ("words", "context")}
        least = {"pool_size": 1, "vector_dimension": 1}
        check_ranges("oracle", self, least, positive=seconds, one_of=choices)
        if (self.vector_dimension or 0) > MOST_DIMENSIONS:
            raise ConfigurationError(f"oracle: vector_dimension is at most {MOST_DIMENSIONS:,}")
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
    vector_index: Literal["hnsw", "ivf"] | None
    text_index: Literal["words", "context"]
    connect_timeout: float
    acquire_timeout: float
    call_timeout: float | None
