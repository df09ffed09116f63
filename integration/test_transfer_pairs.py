"""Migration from and to OpenSearch, Oracle and OCI; `tests/transfer` has the other pairs."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from locus_memory.backends.opensearch import OpenSearchConnection
from locus_memory.registry import open_backend
from locus_memory.transfer import MigrateOptions, migrate
from tests.transfer.conftest import contents, fill_items, fill_threads

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "backends" / "oci"))

from served import ADDRESS, Served

SERVERS = ("opensearch", "oracle", "oci")
OTHERS = ("memory", "sqlite", "postgresql", "redis", "file")
PAIRS = [
    *((one, other) for one in SERVERS for other in (*SERVERS, *OTHERS)),
    *((other, one) for one in SERVERS for other in OTHERS),
]
"""The kinds of source and target; a folder of files has no store."""


def params(pairs):
    """Return the parameters of pairs; one from or to SQLite stands for the slow others."""
    slow = pytest.mark.slow
    return [pytest.param(*pair, marks=() if "sqlite" in pair else slow) for pair in pairs]


@pytest.fixture(scope="module")
def oci():
    if find_spec("oci") is None:
        pytest.skip("needs the SDK of OCI, of 500 MB: the extra 'live' has it")
    with Served() as served:
        yield served


@pytest.fixture
async def opened(request, tmp_path, name_of, oracle_tables):
    """Opens a new, empty backend by its kind and a name."""
    prefixes = []

    def opened(kind, name):
        label = name_of(tmp_path / name)
        if kind in ("memory", "sqlite", "file"):
            return open_backend("memory" if kind == "memory" else f"{kind}:{tmp_path / name}")
        if kind == "oracle":
            prefix = oracle_tables.prefix(tmp_path / name, tmp_path)
            return open_backend(oracle_tables.url, table_prefix=prefix)
        if kind == "oci":
            options = request.getfixturevalue("oci").options
            return open_backend(f"oci:{ADDRESS}", prefix=f"{label}/", **options)
        url = request.getfixturevalue(f"one_{kind}")
        if kind == "opensearch":
            prefixes.append(f"{label}-")
            return open_backend(url, index_prefix=prefixes[-1])
        return open_backend(
            url, **{"redis": {"key_prefix": f"{label}:"}}.get(kind, {"schema": label})
        )

    yield opened
    await oracle_tables.empty()
    if prefixes:
        where = request.getfixturevalue("one_opensearch").partition(":")[2]
        async with OpenSearchConnection(where) as connection:
            for prefix in prefixes:
                await connection.request("DELETE", f"/{prefix}*")


@pytest.mark.parametrize(
    ("source", "target"), params([pair for pair in PAIRS if "file" not in pair])
)
async def test_items_come_whole(opened, source, target):
    async with opened(source, "one") as one, opened(target, "other") as other:
        if other.store.capabilities.semantic_search or source == target:
            await fill_items(one.store)
        else:
            await one.store.put_batch([(("many",), f"{n:03}", {"n": n}) for n in range(250)])
        report = await migrate(one, other, MigrateOptions(verify=True))
        assert report.equal, report.comparisons
        assert report.items > 240
        assert await contents(other) == await contents(one)
        again = await migrate(one, other)
        assert again.written == 0


@pytest.mark.parametrize(("source", "target"), params(PAIRS))
async def test_threads_come_whole(opened, source, target):
    async with opened(source, "one") as one, opened(target, "other") as other:
        await fill_threads(one.checkpointer)
        report = await migrate(one, other, MigrateOptions(verify=True, only="threads"))
        assert report.equal, report.comparisons
        assert await contents(other) == await contents(one)
        await other.checkpointer.save({"more": 1}, "long")
