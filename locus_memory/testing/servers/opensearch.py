"""OpenSearch 3.6 or 2.19 with its k-NN plugin: Maven fetches it, a Java of this machine runs it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import ssl
import urllib.request
from base64 import b64encode
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from typing_extensions import override

from locus_memory.testing.servers.certificates import write_certificates
from locus_memory.testing.servers.opensearch_files import java_for, unpacked
from locus_memory.testing.servers.server import (
    HOST,
    NOBODY,
    Server,
    free_port,
    readable_by_all,
)

__all__ = ["OpenSearchServer"]

_SECURE: Final = "2.19.4"
"""The newest version whose security plugin needs no other plugin."""

_LOGGING: Final = """status = error
appender.console.type = Console
appender.console.name = console
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = [%d{ISO8601}][%-5p][%c{1.}] %m%n
rootLogger.level = info
rootLogger.appenderRef.console.ref = console
"""

_SECURITY: Final = {
    "plugins.security.ssl.transport.pemcert_filepath": "certificates/node.pem",
    "plugins.security.ssl.transport.pemkey_filepath": "certificates/node.key",
    "plugins.security.ssl.transport.pemtrustedcas_filepath": "certificates/ca.pem",
    "plugins.security.ssl.transport.enforce_hostname_verification": False,
    "plugins.security.ssl.http.enabled": True,
    "plugins.security.ssl.http.pemcert_filepath": "certificates/node.pem",
    "plugins.security.ssl.http.pemkey_filepath": "certificates/node.key",
    "plugins.security.ssl.http.pemtrustedcas_filepath": "certificates/ca.pem",
    "plugins.security.nodes_dn": ["CN=node"],
    "plugins.security.allow_default_init_securityindex": True,
    "plugins.security.restapi.roles_enabled": ["all_access"],
}

_FLAGS: Final = (
    "-Xss1m",
    # Half the processor time of the defaults, on a start that takes seconds.
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-Djava.awt.headless=true",
    "-Dfile.encoding=UTF-8",
    "-Djna.nosys=true",
    "-Dio.netty.noUnsafe=true",
    "-Dio.netty.noKeySetOptimization=true",
    "-Dio.netty.recycler.maxCapacityPerThread=0",
    "-Dlog4j.shutdownHookEnabled=false",
    "-Dlog4j2.disable.jmx=true",
    "-Dopensearch.distribution.type=zip",
    "-Dopensearch.bundled_jdk=false",
)


class OpenSearchServer(Server):
    """A node of OpenSearch: alone, or one of a cluster.

    It takes 10 seconds of processor time to start. Acknowledged data survives a crash: an
    index syncs its translog before it acknowledges a write.

    Only the engine `lucene` of the k-NN plugin works: the others need native libraries. Do not use
    them, and name the engine: an index of another engine ends the server with its first document.

    Args:
        version: The version of the server. With `security`, it is 2.19.4.
        heap: The memory of its Java, in MB.
        joining: A running server; the new one joins its cluster.
        security: Whether it has the security plugin, TLS and passwords, and no k-NN plugin. Its
            users `admin`, `readall` and others have their name as password.
        settings: Settings of `opensearch.yml`, such as `{"http.max_content_length": "1mb"}`.

    Attributes:
        transport_port: The port for other nodes.
        nodes: The nodes of its cluster.
        wanted_status: The status of the cluster at which it is ready: green, yellow or red.
    """

    package = "opensearch"
    patience = 300.0
    attempts = 2

    def __init__(
        self,
        *,
        version: str = "3.6.0",
        heap: int = 512,
        joining: OpenSearchServer | None = None,
        security: bool = False,
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__()
        self.version = _SECURE if security else version
        self.security = security
        self.wanted_status = "yellow"
        self.transport_port = free_port()
        self._heap = heap
        self._settings = dict(settings or {})
        self._starts_cluster = joining is None
        self.nodes: list[OpenSearchServer] = [] if joining is None else joining.nodes
        self.nodes.append(self)

    @property
    @override
    def url(self) -> str:
        secret = "admin:admin@" if self.security else ""
        return f"opensearch:{self.address.replace('://', f'://{secret}')}"

    @property
    def address(self) -> str:
        """The URL without a password."""
        return f"{'https' if self.security else 'http'}://{HOST}:{self.port}"

    @property
    def authority(self) -> Path:
        """The certificate of the authority that signed that of the server."""
        return self.folder / "conf" / "certificates" / "ca.pem"

    def call(self, method: str, path: str, body: Any = None) -> Any:
        """Send a request as the administrator and return the JSON of the answer.

        Raises:
            OSError: It does not answer, or refuses.
        """
        context = ssl.create_default_context(cafile=self.authority) if self.security else None
        # A proxy of the environment is not for this machine.
        opener = urllib.request.build_opener(
            urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context)
        )
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.address}{path}", data, method=method)  # noqa: S310 - of this machine
        request.add_header("Content-Type", "application/json")
        if self.security:
            request.add_header("Authorization", f"Basic {b64encode(b'admin:admin').decode()}")
        with opener.open(request, timeout=30) as answer:
            return json.load(answer)

    @override
    def _command(self) -> Sequence[str]:
        plugin = "opensearch-security" if self.security else "opensearch-knn"
        java = java_for(self.version)
        home = readable_by_all(unpacked(self.version, (plugin,)))
        self._configure(home)
        # Version 3 looks for the classes of its sandbox, which is not switched on.
        agents = home.glob("agent/opensearch-agent-bootstrap-*.jar")
        classes = ":".join((f"{home}/lib/*", *map(str, agents)))
        flags = [f"-Xms{self._heap}m", f"-Xmx{self._heap}m", *_FLAGS]
        if self.version.startswith("2.") and java.version >= 18:
            flags.append("-Djava.security.manager=allow")
        places = {
            "java.io.tmpdir": self.folder / "tmp",
            "jna.tmpdir": self.folder / "tmp",
            "opensearch.path.home": home,
            "opensearch.path.conf": self.folder / "conf",
        }
        flags += [f"-D{name}={place}" for name, place in places.items()]
        program = str(readable_by_all(java.program.parents[1]) / "bin" / "java")
        return (program, *flags, "-cp", classes, "org.opensearch.bootstrap.OpenSearch")

    def _configure(self, home: Path) -> None:
        folders = [self.folder / name for name in ("conf", "data", "logs", "tmp")]
        is_new = not folders[0].exists()
        for folder in folders:
            folder.mkdir(exist_ok=True)
        if self.security and is_new:
            users = home / "plugins" / "opensearch-security" / "config"
            shutil.copytree(users, folders[0] / "opensearch-security")
            write_certificates(folders[0] / "certificates", HOST)
        others = [node for node in self.nodes if node is not self]
        settings = {
            "cluster.name": "test",
            "node.name": self.folder.name,
            "path.data": str(folders[1]),
            "path.logs": str(folders[2]),
            "network.host": HOST,
            "http.port": self.port,
            "transport.port": self.transport_port,
            "discovery.seed_hosts": [f"{HOST}:{node.transport_port}" for node in others],
            # A disk that is nearly full makes indexes read-only.
            "cluster.routing.allocation.disk.threshold_enabled": False,
            **(_SECURITY if self.security else {}),
            **self._settings,
        }
        if self._starts_cluster:
            settings["cluster.initial_cluster_manager_nodes"] = [self.folder.name]
        lines = (f"{name}: {json.dumps(value)}\n" for name, value in settings.items())
        (folders[0] / "opensearch.yml").write_text("".join(lines))
        (folders[0] / "log4j2.properties").write_text(_LOGGING)
        if self._user() is not None:
            for path in (self.folder, *self.folder.rglob("*")):
                shutil.chown(path, NOBODY, NOBODY)

    @override
    def _answers(self) -> bool:
        try:
            path = f"/_cluster/health?wait_for_status={self.wanted_status}&timeout=2s"
            health = self.call("GET", path)
        except OSError:
            # Refused, or an error while it starts.
            return False
        return not health["timed_out"]

    @override
    def _user(self) -> int | None:
        # It refuses to run as root.
        return NOBODY if os.geteuid() == 0 else None

    @override
    def close(self) -> None:
        """Shut it down and remove its data; calling it again is harmless."""
        super().close()
        if self in self.nodes:
            self.nodes.remove(self)

    def pause(self) -> None:
        """Stop all of its threads, like a machine that hangs, until `resume`."""
        os.kill(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        """Let it go on."""
        os.kill(self.pid, signal.SIGCONT)
