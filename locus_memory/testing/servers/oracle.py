"""Oracle's wire protocol in front of PostgreSQL, of the package `seerdb`."""

from __future__ import annotations

import signal
import socket
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from typing_extensions import override

from locus_memory.errors import MissingDriverError
from locus_memory.testing.servers.postgresql import PostgreSQLServer
from locus_memory.testing.servers.server import HOST, Server

__all__ = ["OracleServer"]

_MIRROR: Final = Path(__file__).with_name("oracle_mirror.py")


class OracleServer(Server):
    """The protocol of Oracle Database 23ai or 19c: the statements run on PostgreSQL.

    It is not Oracle Database. The real driver connects to it, but no plan and no time on it means
    anything, and it lacks PL/SQL and Oracle Text.

    Acknowledged data survives a crash of the server, not of the machine.

    Args:
        password: The password of the user `LOCUS`, which owns everything.
        release: `"23ai"`, or `"19c"`, which has no pipelines, nor the types JSON and VECTOR.
    """

    package = "seerdb"

    def __init__(self, *, password: str = "tiger", release: str = "23ai") -> None:  # noqa: S107 - of a test server
        super().__init__()
        self._password = password
        self._release = release
        self._postgresql = PostgreSQLServer()
        self._database_runs = False

    @property
    @override
    def url(self) -> str:
        return f"oracle://LOCUS:{self._password}@{HOST}:{self.port}/FREEPDB1"

    @override
    def start(self) -> None:
        if find_spec("seerdb") is None or find_spec("psycopg") is None:
            raise MissingDriverError(
                "OracleServer: needs the 'oracle-test' extra: "
                "pip install 'locus-memory[oracle-test]'"
            )
        if not self._database_runs:
            self._postgresql.start()
            self._database_runs = True
        super().start()

    def run(self, statement: str) -> str:
        """Return the output of `psql` for a statement of PostgreSQL; see `PostgreSQLServer`."""
        return self._postgresql.run(statement)

    @override
    def stop(self) -> None:
        super().stop()
        self._postgresql.stop()
        self._database_runs = False

    @override
    def kill(self) -> None:
        """End all of its processes at once, like a crash."""
        super().kill()
        self._postgresql.kill()
        self._database_runs = False

    @override
    def close(self) -> None:
        super().close()
        self._postgresql.close()

    @override
    def _command(self) -> Sequence[str]:
        # By its path: the process needs nothing of this package.
        database = self._postgresql.url
        arguments = (database, str(self.port), self._password, self._release)
        return (sys.executable, str(_MIRROR), *arguments)

    @override
    def _answers(self) -> bool:
        try:
            with socket.create_connection((HOST, self.port), timeout=1):
                return True
        except OSError:
            return False

    @override
    def _stop_signal(self) -> signal.Signals:
        # It ignores the gentler ones while a client is connected.
        return signal.SIGKILL
