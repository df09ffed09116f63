"""oracledb in its thin mode: the part of it that this backend uses, with types."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Protocol, cast

import oracledb

__all__ = [
    "DRIVER_ERRORS",
    "Binds",
    "Connection",
    "DriverError",
    "Pipeline",
    "Pool",
    "Row",
    "code_of",
    "connect",
    "new_pipeline",
]

Pool = oracledb.AsyncConnectionPool
DriverError = oracledb.Error
Binds = dict[str, Any]
Row = tuple[Any, ...]

DRIVER_ERRORS: Final = (oracledb.Error, oracledb.Warning, OSError)
"""What oracledb raises; it wraps most errors of the socket."""


class Result(Protocol):
    """The result of one operation of a pipeline."""

    @property
    def rows(self) -> list[Row] | None:
        """The rows of a query."""
        ...


class Pipeline(Protocol):
    """Operations of one round trip."""

    def add_execute(self, statement: str, parameters: Binds) -> Any:
        """Add a statement that is not a query."""
        ...

    def add_executemany(self, statement: str, parameters: list[Binds]) -> Any:
        """Add a statement for several rows of binds."""
        ...

    def add_fetchall(
        self, statement: str, parameters: Binds, arraysize: int, *, fetch_lobs: bool
    ) -> Any:
        """Add a query."""
        ...

    def add_commit(self) -> Any:
        """Add a commit."""
        ...


class Connection(Protocol):
    """A connection; see https://python-oracledb.readthedocs.io/en/latest/api_manual/async_connection.html."""

    @property
    def version(self) -> str:
        """The version of the database, such as `23.26.0.0.0`."""
        ...

    @property
    def transaction_in_progress(self) -> bool:
        """Whether the session has changes that are not committed."""
        ...

    call_timeout: int

    async def execute(self, statement: str, parameters: Binds | None = None) -> None:
        """Run a statement that is not a query."""
        ...

    async def fetchall(
        self,
        statement: str,
        parameters: Binds | None = None,
        arraysize: int | None = None,
        *,
        fetch_lobs: bool | None = None,
    ) -> list[Row]:
        """Return all rows of a query."""
        ...

    async def run_pipeline(self, pipeline: Any) -> Sequence[Result]:
        """Run operations; the first error ends the pipeline and is raised."""
        ...

    def cursor(self) -> Any:
        """Return a cursor, which knows the number of changed rows."""
        ...

    def is_healthy(self) -> bool:
        """Whether it is not known to be closed; it asks nobody."""
        ...

    async def ping(self) -> None:
        """Ask the server whether it is there."""
        ...

    async def commit(self) -> None:
        """Commit."""
        ...

    async def rollback(self) -> None:
        """Roll back."""
        ...

    async def close(self) -> None:
        """Take leave of the server."""
        ...

    def terminate(self) -> None:
        """Close the socket at once."""
        ...


async def connect(arguments: dict[str, Any]) -> Connection:
    """Open a connection, given the arguments of `oracledb.connect_async`."""
    return cast("Connection", await oracledb.connect_async(**arguments))


def new_pipeline() -> Pipeline:
    """Return an empty pipeline."""
    return cast("Pipeline", oracledb.create_pipeline())


def code_of(error: BaseException | None) -> str:
    """Return the code of an error of the driver or the server, such as `ORA-00001`, or ``."""
    detail = error.args[0] if isinstance(error, oracledb.Error) and error.args else None
    return str(getattr(detail, "full_code", "") or "")
