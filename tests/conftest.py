from __future__ import annotations

import asyncio
import gc
import os
import re
import shutil
import ssl
import subprocess
import sys
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import cache
from hashlib import blake2b
from itertools import count
from pathlib import Path

import asyncpg
import certifi
import pytest
from hypothesis import HealthCheck, settings

pytest.register_assert_rewrite("locus_memory.testing")
sys.path.insert(0, str(Path(__file__).parents[1]))

from locus_memory.errors import MissingDriverError  # noqa: E402 - as the next one
from locus_memory.testing.servers import (  # noqa: E402 - once its assertions are rewritten
    PostgreSQLServer,
    RedisServer,
    ValkeyServer,
)
from tests.long_properties import is_long_property  # noqa: E402 - once it is on the path

# A machine that does other work is no defect.
PATIENT = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("busy", **PATIENT)
# Where `CI` is set, each run tries the same examples, half as many.
settings.register_profile("ci", **PATIENT, derandomize=True, print_blob=True, max_examples=50)
settings.load_profile("ci" if "CI" in os.environ else "busy")
# What `make quick` runs; `make test` and `make slow` look further.
settings.register_profile("quick", settings(), max_examples=10)

CLEANING = """
    SELECT format('TRUNCATE %s RESTART IDENTITY CASCADE', oid::regclass) FROM pg_class
    WHERE relnamespace = to_regnamespace($1) AND relkind = 'r' AND pg_relation_size(oid) > 0
      AND relname NOT LIKE '%migrations'
    UNION ALL
    SELECT format('SELECT setval(%L, 1, false)', oid::regclass) FROM pg_class
    WHERE relnamespace = to_regnamespace($1) AND relkind = 'S'
    UNION ALL
    SELECT format('DROP INDEX %s', c.oid::regclass) FROM pg_class AS c JOIN pg_am AS a
      ON a.oid = c.relam
    WHERE relnamespace = to_regnamespace($1) AND relkind = 'i' AND amname = 'hnsw'
"""
"""Statements that leave a schema as it is when it is new; indexes of vectors are made on demand."""

UNFINISHED = """
    SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity
    WHERE backend_type = 'client backend' AND state <> 'idle' AND pid <> pg_backend_pid()
"""
"""Ends what a test that failed or was cancelled has left running, and waits for its end."""

MEMORY = Path("/dev/shm")
ROOM = 4 * 1024**3
"""Bytes that a folder in memory has free before the tests use it: ten times their need."""

NUMBERS = count()

SERVERS = ("postgresql", "redis", "valkey", "cluster", "three_masters", "own_server")


def is_fit_for_files(folder):
    """Whether a folder has room for the files of the tests, and lets the tests run scripts."""
    if not (folder.is_dir() and os.access(folder, os.W_OK)):
        return False
    system = os.statvfs(folder)
    return system.f_bavail * system.f_frsize >= ROOM and not system.f_flag & os.ST_NOEXEC


def pytest_addoption(parser):
    """Add an option for a run on a further interpreter, after a whole one on another."""
    parser.addoption("--few", type=int, metavar="N", help="run a test with at most N parameters")


def pytest_configure():
    """Keep the files of the tests in memory, if it has room: databases wait for a disk."""
    if is_fit_for_files(MEMORY):
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Collect no garbage meanwhile: there is hardly any, and each look takes longer."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def needs_a_server(item):
    """Whether a fixture of the test, or the value of a parameter, is named for a server."""
    parameters = item.callspec.params.values() if hasattr(item, "callspec") else ()
    names = [*item.fixturenames, *(each for each in parameters if isinstance(each, str))]
    classes = (each.__name__.lower() for each in parameters if isinstance(each, type))
    names += [name.removeprefix("in") for name in classes]
    return any(name.startswith(SERVERS) for name in names)


def is_slow(item):
    """Whether the test is marked, or a long property of a suite on another backend than SQLite."""
    return item.get_closest_marker("slow") is not None or is_long_property(item)


def few_of(items, most):
    """Yield the tests with at most so many parameters each, spread over all of them."""
    of_a_test = defaultdict(list)
    for item in items:
        marks = tuple(item.get_closest_marker(name) is None for name in ("slow", "server"))
        of_a_test[item.nodeid.partition("[")[0], marks].append(item)
    for group in of_a_test.values():
        number = min(most, len(group))
        yield from (group[place * len(group) // number] for place in range(number))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    """Mark what needs a server and what is slow; begin with the slow, lest one be the last."""
    for item in items:
        if needs_a_server(item):
            item.add_marker("server")
        if is_slow(item):
            item.add_marker("slow")
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)
    if (most := config.getoption("--few")) is not None:
        items[:] = list(few_of(items, most))


def skip_servers_without_a_wheel():
    """Skip what needs a server whose package has no wheel yet for an interpreter as new as this."""
    try:
        return (yield)
    except MissingDriverError as error:
        if sys.version_info >= (3, 14) and RedisServer.package in str(error):
            pytest.skip(f"{error}; it has no wheel for Python 3.14 yet")
        raise


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup():
    return (yield from skip_servers_without_a_wheel())


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call():
    return (yield from skip_servers_without_a_wheel())


def pytest_collection_finish():
    """Spare each collection of garbage, and each look at all objects, all that is there now."""
    gc.freeze()


@pytest.fixture
def tmp_path(request, tmp_path_factory):
    """An empty folder, which is removed if the test passes.

    To number a folder, pytest's own fixture reads the names of all that were made before it.
    """
    failed = request.session.testsfailed
    name = re.sub(r"\W", "_", request.node.name)[:30]
    folder = tmp_path_factory.mktemp(f"{name}{next(NUMBERS)}", numbered=False)
    yield folder
    if request.session.testsfailed == failed:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session", autouse=True)
def authorities_are_read_once():
    """Share the context of the certificate authorities: each HTTP client reads them, for 30 ms."""
    create = ssl.create_default_context
    shared = cache(lambda file: create(cafile=file))
    usual = {certifi.where(), os.environ.get("SSL_CERT_FILE")} - {None}

    def create_default_context(*arguments, **options):
        if not arguments and options.keys() == {"cafile"} and options["cafile"] in usual:
            return shared(options["cafile"])
        return create(*arguments, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ssl, "create_default_context", create_default_context)
        yield


@pytest.fixture(autouse=True)
def no_settings_of_the_developer(monkeypatch):
    monkeypatch.delenv("LOCUS_MEMORY_URL", raising=False)
    monkeypatch.delenv("LOCUS_MEMORY_EMBEDDER", raising=False)
    monkeypatch.delenv("LOCUS_MEMORY_DEBUG", raising=False)


@pytest.fixture(scope="session")
def postgresql_server():
    """A PostgreSQL server with pgvector for the whole run."""
    with PostgreSQLServer(max_connections=200) as server:
        yield server


class Cleaner:
    """Empties schemas, over a connection in a thread of its own: any test may call it."""

    def __init__(self, url):
        self.thread = ThreadPoolExecutor(1)
        self.runner = asyncio.Runner(loop_factory=asyncio.new_event_loop)
        self.connection = self.run(self._connect, url)

    def run(self, function, *arguments):
        return self.thread.submit(lambda: self.runner.run(function(*arguments))).result()

    @staticmethod
    async def _connect(url):
        return await asyncpg.connect(url, command_timeout=60)

    def end_the_unfinished(self):
        self.run(self.connection.execute, UNFINISHED)

    def empty(self, schema):
        self.run(self._empty, schema)

    async def _empty(self, schema):
        statements = [row[0] for row in await self.connection.fetch(CLEANING, schema)]
        if statements:
            await self.connection.execute(";".join(statements))

    def close(self):
        self.run(self.connection.close)
        self.thread.submit(self.runner.close).result()
        self.thread.shutdown()


@pytest.fixture(scope="session")
def cleaner(postgresql_server):
    cleaner = Cleaner(postgresql_server.url)
    yield cleaner
    cleaner.close()


@pytest.fixture
def schema_of(cleaner):
    """Returns the schema of a folder: an empty one, with the tables of a test before it.

    To make a schema takes longer than most tests. A folder that is gone leaves its schema to the
    next. Tests of tables, migrations and plans have a schema of their own instead.
    """
    cleaner.end_the_unfinished()
    folders = []

    def schema_of(folder):
        if folder not in folders:
            free = (at for at, each in enumerate(folders) if not each.exists())
            at = next(free, len(folders))
            cleaner.empty(f"t_used_{at}")
            folders[at : at + 1] = [folder]
        return f"t_used_{folders.index(folder)}"

    return schema_of


@pytest.fixture(scope="session")
def redis_server():
    """A Redis 8 server with vector sets for the whole run."""
    with RedisServer() as server:
        yield server


@pytest.fixture(scope="session")
def valkey_server():
    """A Valkey server, which has no modules, for the whole run."""
    with ValkeyServer() as server:
        yield server


@pytest.fixture(scope="session")
def redisearch_server():
    """A Valkey server with RediSearch, and without vector sets, for the whole run."""
    with ExitStack() as stack:
        try:
            server = stack.enter_context(ValkeyServer(search=True))
        except MissingDriverError as error:
            pytest.skip(f"{error}; it exists for Linux on x86-64 only")
        yield server


@pytest.fixture(scope="session")
def model_endpoint():
    """The address of an OpenAI-compatible endpoint whose model goes by rules."""
    script = Path(__file__).with_name("model_endpoint.py")
    with subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, text=True) as process:
        yield f"localhost:{int(process.stdout.readline())}"
        process.terminate()


@pytest.fixture(params=["memory", "sqlite", "postgresql", "redis"])
def provider(request, tmp_path):
    """A backend of each kind, empty: its provider string and its options."""
    if request.param == "memory":
        return "memory", {}
    if request.param == "sqlite":
        return f"sqlite:{tmp_path / 'test.db'}", {}
    server = request.getfixturevalue(f"{request.param}_server")
    if request.param == "postgresql":
        return server.url, {"schema": request.getfixturevalue("schema_of")(tmp_path)}
    name = "t_" + blake2b(bytes(tmp_path), digest_size=8).hexdigest()
    return server.url, {"key_prefix": f"{name}:"}
