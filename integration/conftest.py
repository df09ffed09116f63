"""The servers of these tests: of Docker where it answers, else the developer's, else from pip."""

from __future__ import annotations

import asyncio
import gc
import hashlib
import os
import sys
import warnings
from collections import defaultdict
from contextlib import ExitStack, contextmanager
from functools import cache, partial
from pathlib import Path
from zlib import crc32

import docker
import pytest
from docker.errors import DockerException

pytest.register_assert_rewrite("locus_memory.testing")
# Some tests here are longer ones of those in `tests/`, and call the same functions.
HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from integration.framework_tests import run_tests, tests_of  # noqa: E402, F401 - two fixtures
from integration.oracle_tables import Tables, serving_oracle  # noqa: E402 - as the next one
from locus_memory.errors import MissingDriverError  # noqa: E402
from locus_memory.testing.servers import (  # noqa: E402 - once its assertions are rewritten
    OpenSearchServer,
    PostgreSQLServer,
    RedisServer,
    ValkeyServer,
)
from tests.long_properties import is_long_property  # noqa: E402 - once it is on the path

POSTGRESQL = {
    "pgvector/pgvector:pg18": PostgreSQLServer,
    "pgvector/pgvector:pg16": None,
    # The oldest versions that are promised.
    "pgvector/pgvector:0.6.2-pg16": None,
}
REDIS = {
    "redis:8": RedisServer,
    "redis/redis-stack-server:7.4.0-v1": ValkeyServer,
    "redis:7": None,
    "valkey/valkey:8": ValkeyServer,
}
OPENSEARCH = {
    "opensearchproject/opensearch:3": partial(OpenSearchServer, version="3.6.0"),
    "opensearchproject/opensearch:2": partial(OpenSearchServer, version="2.19.6"),
}

BESIDE = {
    "postgresql_url": {"pgvector/pgvector:pg18", "pgvector/pgvector:pg16"},
    "redis_url": {"redis:8", "redis/redis-stack-server:7.4.0-v1", "valkey/valkey:8"},
    "opensearch_url": {"opensearchproject/opensearch:2"},
    "own_server": {"2.19.6"},
}
"""By fixture, the images whose tests count as slow: the same tests run on another version.

`make test` runs the suites on the newest PostgreSQL, Redis and Valkey.
"""

AGAIN = (
    "machines/test_pgbouncer.py",
    "machines/test_redis_cluster.py",
    "oracle/test_19c.py",
    "test_encrypted_checkpointers.py",
    "test_postgresql.py",
    "test_redis.py::TestRedisCheckpointer",
    "test_redis.py::TestRedisStore",
    "test_redis_variants.py",
    "test_wrappers.py",
)
"""Where suites run on a server or a store that differs little from one on which they run whole.

Of a test with parameters all but one count as slow: another one for each class.
"""


def is_slow(item):
    """Whether the test is marked, a long property, or one for one more version of a server."""
    if item.get_closest_marker("slow") is not None or is_long_property(item):
        return True
    parameters = item.callspec.params if hasattr(item, "callspec") else {}
    return any(parameters.get(fixture) in images for fixture, images in BESIDE.items())


def repeated(items):
    """Return the tests of suites whose neighbours with other parameters are enough."""
    again = tuple(f"{HERE.name}/{place}" for place in AGAIN)
    of_a_test = defaultdict(list)
    for item in items:
        is_of_a_suite = item.function.__module__.startswith("locus_memory.testing")
        if is_of_a_suite and item.nodeid.startswith(again):
            of_a_test[item.nodeid.partition("[")[0]].append(item)
    for name, group in of_a_test.items():
        place = crc32(name.encode()) % len(group)
        yield from group[:place] + group[place + 1 :]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Mark what is slow: `.ci/run` leaves it out, and `make live` does not."""
    for item in items:
        if is_slow(item):
            item.add_marker("slow")
    quick = [item for item in items if item.get_closest_marker("slow") is None]
    for item in list(repeated(quick)):
        item.add_marker("slow")


@cache
def docker_answers():
    with warnings.catch_warnings():
        # Where nobody answers, the client of Docker leaves its socket to the collector.
        warnings.simplefilter("ignore", ResourceWarning)
        answer = ping()
        gc.collect()
    return answer


def ping():
    try:
        client = docker.from_env()
    except DockerException:
        return False
    try:
        return client.ping()
    except DockerException:
        return False
    finally:
        client.close()


@contextmanager
def postgresql_of_docker(image):
    from testcontainers.postgres import PostgresContainer  # noqa: PLC0415 - only with Docker

    with PostgresContainer(image, driver=None) as server:
        yield server.get_connection_url()


@contextmanager
def redis_of_docker(image):
    from testcontainers.redis import RedisContainer  # noqa: PLC0415 - only with Docker

    with RedisContainer(image) as server:
        yield f"redis://{server.get_container_host_ip()}:{server.get_exposed_port(6379)}"


@contextmanager
def opensearch_of_docker(image):
    from testcontainers.opensearch import OpenSearchContainer  # noqa: PLC0415 - only with Docker

    with OpenSearchContainer(image) as server:
        host = server.get_config()
        yield f"opensearch:{host['host']}:{host['port']}"


@contextmanager
def serving(image, of_docker, variable, from_pip):
    """Give the URL of a server, or skip what needs it and say why."""
    if docker_answers():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            try:
                container = of_docker(image)
                url = container.__enter__()
            except DockerException as error:
                pytest.skip(f"Docker cannot run {image}: {type(error).__name__}")
        try:
            yield url
        finally:
            container.__exit__(None, None, None)
    elif url := os.environ.get(variable):
        yield url
    elif from_pip is None:
        pytest.skip(f"{image} needs Docker, or a server named by {variable}")
    else:
        with ExitStack() as stack:
            try:
                server = stack.enter_context(from_pip())
            except MissingDriverError as error:
                pytest.skip(f"{image} needs Docker: {error}")
            yield server.url


@pytest.fixture(scope="session")
def name_of():
    """Return a function from the folder of a test to a name that no other test has."""
    return lambda folder: "t" + hashlib.sha256(str(folder).encode()).hexdigest()[:16]


@pytest.fixture(scope="session")
def url_of():
    """Return a function to the URL of a server, which starts once for all who ask for it."""
    with ExitStack() as stack:
        yield cache(lambda *server: stack.enter_context(serving(*server)))


def postgresql_server(image):
    return image, postgresql_of_docker, "LOCUS_TEST_POSTGRES_URL", POSTGRESQL[image]


def redis_server(image):
    return image, redis_of_docker, "LOCUS_TEST_REDIS_URL", REDIS[image]


def opensearch_server(image):
    return image, opensearch_of_docker, "LOCUS_TEST_OPENSEARCH_URL", OPENSEARCH[image]


@pytest.fixture(scope="session", params=POSTGRESQL)
def postgresql_url(request, url_of):
    return url_of(*postgresql_server(request.param))


@pytest.fixture(scope="session")
def one_postgresql(url_of):
    """The newest PostgreSQL alone."""
    return url_of(*postgresql_server(next(iter(POSTGRESQL))))


@pytest.fixture(scope="session", params=REDIS)
def redis_url(request, url_of):
    return url_of(*redis_server(request.param))


@pytest.fixture(scope="session")
def one_redis(url_of):
    """The newest Redis alone."""
    return url_of(*redis_server(next(iter(REDIS))))


@pytest.fixture(scope="session", params=OPENSEARCH)
def opensearch_url(request, url_of):
    return url_of(*opensearch_server(request.param))


@pytest.fixture(scope="session")
def one_opensearch(url_of):
    """The newest OpenSearch alone."""
    return url_of(*opensearch_server(next(iter(OPENSEARCH))))


@pytest.fixture(scope="session")
def oracle_tables():
    with serving_oracle() as url:
        tables = Tables(url)
        yield tables
        asyncio.run(tables.drop())
