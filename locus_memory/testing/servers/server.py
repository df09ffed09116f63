"""A database server for one test: a process on a free port, with a folder of its own."""

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
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from locus_memory.errors import BackendUnavailableError, MissingDriverError

__all__ = ["NOBODY", "Server", "free_port", "readable_by_all"]

HOST: Final = "127.0.0.1"
PATIENCE: Final = 60.0
"""Seconds a server may take to start or to stop."""

NOBODY: Final = 65534
"""The user and group of a server that refuses to run as root."""

_PAUSE: Final = 0.02


class Server(ABC):
    """A database server for one test.

    Attributes:
        port: The port on 127.0.0.1; the same after a restart.
        folder: The folder of its data; removed by `close`.
    """

    package: str
    """The package that has to be installed."""

    patience: float = PATIENCE
    """Seconds it may take to start or to stop."""

    attempts: int = 5
    """How often it is started; another process may have taken its port."""

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
        for _ in range(self.attempts):
            self.port = self.port or free_port()
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
            process.wait(self.patience)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _wait_until_ready(self) -> bool:
        process, end = self._process, time.monotonic() + self.patience
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


def free_port() -> int:
    """Return a port of this machine that nothing listens on."""
    with socket.socket() as listener:
        listener.bind((HOST, 0))
        return int(listener.getsockname()[1])


def readable_by_all(folder: Path) -> Path:
    """Return the folder, or a copy of it that a server of another user can read."""
    places = folder, *folder.parents
    if os.geteuid() != 0 or all(each.stat().st_mode & 0o005 == 0o005 for each in places):
        return folder
    target = Path(tempfile.gettempdir()) / f"locus-{folder.stat().st_ino}" / folder.name
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
