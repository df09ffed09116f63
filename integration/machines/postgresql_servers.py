"""A primary of PostgreSQL with a streaming standby, and PgBouncer before one."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path

from locus_memory.testing.servers import PostgreSQLServer, Server
from locus_memory.testing.servers.server import NOBODY

HOST = "127.0.0.1"


class StandbyServer(PostgreSQLServer):
    """A standby that streams from a primary, of which it is a copy at first."""

    def __init__(self, primary):
        super().__init__()
        self.primary = primary

    def _initialise(self, data):
        if os.geteuid() == 0:
            shutil.chown(self.folder, NOBODY, NOBODY)
        source = ("-h", HOST, "-p", str(self.primary.port), "-U", "locus")
        how = ("--checkpoint=fast", "--write-recovery-conf", "--no-sync")
        self._run("pg_basebackup", "-D", str(data), *source, *how)


class Pair:
    """A primary and a standby, in one URL.

    Attributes:
        primary: The server that takes writes at first.
        standby: The other one.
    """

    def __init__(self, primary, standby):
        self.primary, self.standby = primary, standby

    @property
    def url(self):
        hosts = f"{HOST}:{self.primary.port},{HOST}:{self.standby.port}"
        return f"postgresql://locus@{hosts}/postgres"

    def promote(self):
        """Make the standby a primary, as a failover manager does."""
        assert self.standby.run("SELECT pg_promote()") == "t"


@contextmanager
def pair():
    """Start a primary and a standby; a commit is acknowledged once the standby has it."""
    with PostgreSQLServer() as primary, StandbyServer(primary) as standby:
        primary.run("ALTER SYSTEM SET synchronous_standby_names = '*'")
        primary.run("SELECT pg_reload_conf()")
        while primary.run("SELECT sync_state FROM pg_stat_replication") != "sync":
            pass
        yield Pair(primary, standby)


class PgBouncer(Server):
    """PgBouncer in transaction mode with few connections, before a server.

    Args:
        server: The server.
    """

    program = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin")

    def __init__(self, server):
        super().__init__()
        self.server = server
        kept = {"max_prepared_statements": 200} if self.keeps_statements else {}
        self.settings = {
            "pool_mode": "transaction",
            "default_pool_size": 4,
            "max_client_conn": 500,
            **kept,
        }

    @property
    def url(self):
        return f"postgresql://locus@{HOST}:{self.port}/postgres"

    @cached_property
    def keeps_statements(self):
        """Whether it knows the prepared statements of its clients, as from 1.21 on."""
        said = subprocess.run(
            [self.program, "--version"], capture_output=True, text=True, check=True
        )
        found = re.search(r"PgBouncer (\d+)\.(\d+)", said.stdout)
        return (int(found[1]), int(found[2])) >= (1, 21)

    def _command(self):
        file = self.folder / "pgbouncer.ini"
        listed = "\n".join(f"{name} = {value}" for name, value in self.settings.items())
        file.write_text(
            f"[databases]\npostgres = host={HOST} port={self.server.port} dbname=postgres "
            f"user=locus\n[pgbouncer]\nlisten_addr = {HOST}\nlisten_port = {self.port}\n"
            f"unix_socket_dir =\nauth_type = any\n{listed}\n"
        )
        if os.geteuid() == 0:
            for each in (self.folder, file, Path(self._log)):
                shutil.chown(each, NOBODY, NOBODY)
        return (self.program, "-q", str(file))

    def _answers(self):
        try:
            socket.create_connection((HOST, self.port), timeout=1).close()
        except OSError:
            return False
        return True

    def _user(self):
        return NOBODY if os.geteuid() == 0 else None
