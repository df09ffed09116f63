"""Both contracts over the driver of Oracle Database, on a server or on one of its protocol."""

from __future__ import annotations

import gc
import hashlib
import os
import warnings
from contextlib import ExitStack, contextmanager

import docker
import pytest
from docker.errors import DockerException

from locus_memory.errors import MissingDriverError
from locus_memory.registry import get_checkpointer, get_store
from locus_memory.testing import CheckpointerConformance, StoreConformance
from locus_memory.testing.servers import OracleServer

IMAGE = "gvenzl/oracle-free:23-slim-faststart"


def docker_has_the_image():
    with warnings.catch_warnings():
        # Where nobody answers, the client of Docker leaves its socket to the collector.
        warnings.simplefilter("ignore", ResourceWarning)
        found = images()
        gc.collect()
    return bool(found)


def images():
    try:
        client = docker.from_env()
    except DockerException:
        return []
    try:
        return client.images.list(IMAGE)
    except DockerException:
        return []
    finally:
        client.close()


@contextmanager
def of_docker():
    from testcontainers.oracle import OracleDbContainer  # noqa: PLC0415 - only with Docker

    options = {"username": "agent", "password": "secret", "dbname": "FREEPDB1"}
    with OracleDbContainer(IMAGE, **options) as server:
        host, port = server.get_container_host_ip(), server.get_exposed_port(1521)
        yield f"oracle://agent:secret@{host}:{port}/FREEPDB1"


@pytest.fixture(scope="session")
def oracle_url():
    with ExitStack() as stack:
        if url := os.environ.get("LOCUS_TEST_ORACLE_URL"):
            yield url
        elif docker_has_the_image():
            yield stack.enter_context(of_docker())
        else:
            try:
                yield stack.enter_context(OracleServer()).url
            except MissingDriverError as error:
                pytest.skip(str(error))


@pytest.fixture
def prefix(tmp_path):
    return prefix_of(tmp_path)


def prefix_of(path):
    return "T" + hashlib.sha256(str(path).encode()).hexdigest()[:16].upper() + "_"


class TestOracleStore(StoreConformance):
    @pytest.fixture(autouse=True)
    def server(self, oracle_url):
        self.url = oracle_url

    def make_store(self, clock, tmp_path):
        return get_store(self.url, table_prefix=prefix_of(tmp_path), clock=clock)


class TestOracleCheckpointer(CheckpointerConformance):
    @pytest.fixture(autouse=True)
    def server(self, oracle_url):
        self.url = oracle_url

    def make_checkpointer(self, clock, tmp_path, **options):
        prefix = prefix_of(tmp_path)
        return get_checkpointer(self.url, table_prefix=prefix, clock=clock, **options)
