"""`OpenSearchServer` keeps what it acknowledged when it is killed, and leaves nothing."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from locus_memory.errors import BackendUnavailableError, MissingDriverError
from locus_memory.testing.servers import OpenSearchServer
from locus_memory.testing.servers.opensearch_files import java_for


@pytest.mark.slow
@pytest.mark.parametrize("version", ["3.6.0", "2.19.6"])
def test_it_keeps_what_it_acknowledged(version):
    try:
        java_for(version)
    except MissingDriverError as error:
        pytest.skip(str(error))
    with OpenSearchServer(version=version, settings={"node.attr.zone": "a"}) as server:
        folder, port, pid = server.folder, server.port, server.pid
        assert server.call("GET", "/")["version"]["number"] == version
        (node,) = server.call("GET", "/_nodes/_local")["nodes"].values()
        assert node["attributes"]["zone"] == "a"
        assert server.call("PUT", "/i/_doc/1", {"a": 1})["result"] == "created"
        server.kill()
        with pytest.raises(BackendUnavailableError):
            _ = server.pid
        server.start()
        assert server.port == port
        assert server.call("GET", "/i/_doc/1")["_source"] == {"a": 1}
        pid = server.pid
    assert not folder.exists()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_what_is_missing_is_named(monkeypatch, tmp_path):
    monkeypatch.setenv("LOCUS_TEST_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", str(tmp_path))
    server = OpenSearchServer()
    with pytest.raises(MissingDriverError, match=r"mvn|needs Java"):
        server.start()
    server.close()


def test_doctor_names_what_the_cluster_can(opensearch_url, tmp_path):
    """The command checks a store and checkpoints, and leaves nothing behind."""
    command = [sys.executable, "-m", "locus_memory.cli", "doctor", "--url", opensearch_url]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "put, get, search and delete work" in done.stdout
    assert "save, load and delete work" in done.stdout
