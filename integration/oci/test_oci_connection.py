"""Strings, authentication, clients that are passed in, errors of the SDK, and what is imported."""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import subprocess
import sys
import warnings

import pytest
from served import ADDRESS

from locus_memory.backends.oci import OCIBackend, OCICheckpointer, OCIConnection, OCIStore
from locus_memory.backends.oci.connection.driver import client_factory
from locus_memory.backends.oci.connection.driver_errors import errors
from locus_memory.backends.oci.options import OCIOptions
from locus_memory.errors import (
    BackendClosedError,
    BackendUnavailableError,
    ConfigurationError,
    LocusMemoryError,
    StoreCapabilityError,
)
from locus_memory.registry import get_store, open_backend

NS = ("connections",)


@pytest.fixture
def client(service):
    return client_factory(OCIOptions(**service.options))()


@pytest.mark.parametrize(
    "where", ["oci:memory", "oci:memory/locustests", "oci://memory@locustests"]
)
async def test_strings(where, options):
    async with open_backend(where, **options, state_type=None) as backend:
        assert backend.provider == "oci"
        await backend.store.put(NS, "k", 1)
        await backend.checkpointer.save({"n": 1}, "t")
        assert await backend.store.get(NS, "k") == 1
        assert await backend.checkpointer.load("t") == {"n": 1}


async def test_the_namespace_is_asked_for_once(service, options):
    async with OCIStore("memory", **options) as store:
        service.counts()
        await asyncio.gather(*(store.get(NS, "k") for _ in range(5)))
        assert service.counts()["GET"] == 5


@pytest.mark.parametrize("bucket", ["missing/locustests", "memory/else", "missing"])
async def test_a_missing_bucket_is_an_error_at_once(bucket, options):
    store = OCIStore(bucket, **options)
    for call in (store.open(), store.get(NS, "k"), store.put(NS, "k", 1), store.scan(NS)):
        with pytest.raises(ConfigurationError, match="does not exist, or no policy allows"):
            await call
    await store.close()


async def test_a_session_token_signs(options):
    signing = {"profile": "SESSION", "authentication": "security_token"}
    async with OCIStore(ADDRESS, **options, **signing) as store:
        assert await store.put(NS, "k", 1) == 1


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"profile": "STRANGER"}, "NotAuthenticated"),
        ({"profile": "MISSING"}, "Profile 'MISSING' not found"),
        ({"config_file": "/nowhere/config"}, "Could not find config file"),
        ({"authentication": "security_token"}, "has no security_token_file"),
        ({"authentication": "resource_principal"}, "OCI_RESOURCE_PRINCIPAL_VERSION"),
    ],
)
async def test_what_cannot_sign_is_a_configuration_error(options, changed, said):
    store = OCIStore(ADDRESS, **{**options, **changed})
    with pytest.raises(ConfigurationError, match=said) as caught:
        await store.open()
    assert "PRIVATE" not in str(caught.value)
    await store.close()


async def test_a_client_is_neither_closed_nor_changed(client, service, prefix):
    before = dict(vars(client)), dict(vars(client.base_client))
    for kind in (OCIStore, OCIBackend):
        made = kind(ADDRESS, client=client, prefix=prefix)
        store = getattr(made, "store", made)
        await asyncio.gather(*(store.put(NS, str(n), n) for n in range(30)))
        await made.close()
        with pytest.raises(BackendClosedError):
            await store.get(NS, "1")
    after = dict(vars(client)), dict(vars(client.base_client))
    # The SDK replaces the session itself when a condition fails.
    for each in (before, after):
        each[1].pop("session")
    assert before == after
    assert client.get_namespace().data == "locustests"
    client.base_client.session.close()


async def test_a_store_and_a_checkpointer_share_a_connection(service, prefix, options):
    connection = OCIConnection(ADDRESS, **options)
    store = OCIStore(client=connection)
    checkpointer = OCICheckpointer(client=connection, state_type=None)
    await store.put(NS, "k", 1)
    await checkpointer.save({"n": 1}, "t")
    await store.close()
    await checkpointer.close()
    assert await checkpointer.load("t") == {"n": 1}
    await connection.close()
    with pytest.raises(BackendClosedError):
        await store.get(NS, "k")


@pytest.mark.parametrize("wrong", [5, "client", object()])
def test_another_object_is_no_client(wrong):
    with pytest.raises(ConfigurationError, match=r"oci\.object_storage\.ObjectStorageClient"):
        OCIStore(ADDRESS, client=wrong)


async def test_a_client_of_the_parent_process_is_refused(client, prefix):
    store = OCIStore(ADDRESS, client=client, prefix=prefix)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            asyncio.events._set_running_loop(None)
            asyncio.new_event_loop().run_until_complete(store.get(NS, "k"))
        except ConfigurationError as error:
            code = 0 if "after the fork" in str(error) else 2
        finally:
            os._exit(code)
    _, status = await asyncio.to_thread(os.waitpid, child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert await store.get(NS, "k") is None
    await store.close()
    client.base_client.session.close()


def test_each_error_of_the_sdk_is_one_of_ours():
    import oci  # noqa: PLC0415 - it may not be installed

    raised = [
        kind
        for kind in vars(oci.exceptions).values()
        if inspect.isclass(kind) and issubclass(kind, Exception)
    ]
    # Of transfers in parts, composite operations and waiting, none of which is used.
    unused = {"MultipartUploadError", "CompositeOperationError", "DownloadTerminated"}
    unused |= {"ResumableDownloadException", "DownloadFailedIncorrectDownloadSize"}
    unused |= {"ChecksumVerificationError"}
    assert len(raised) > 15
    for kind in raised:
        if kind.__name__ in unused:
            continue
        error = kind.__new__(kind)
        Exception.__init__(error, "said")
        error.errors = {"user": "missing"}
        if issubclass(kind, oci.exceptions.ServiceError):
            error.status, error.code, error.message = 500, "X", "said"
            error.headers, error.request_id = {}, "id"
        translated = errors().translate(error, "place")
        assert isinstance(translated, LocusMemoryError), kind
        assert str(translated).startswith("oci place: ")


async def test_text_search_and_vectors_have_a_hint(options):
    async with OCIStore(ADDRESS, **options) as store:
        with pytest.raises(StoreCapabilityError, match="no index of texts: list with query=None"):
            await store.search(NS, "fox")
        with pytest.raises(StoreCapabilityError, match="choose another backend"):
            await store.put_with_embedding(NS, "k", 1, [1.0])
        with pytest.raises(StoreCapabilityError, match="not atomic"):
            await store.write_batch([])


async def test_nothing_is_shown(options, service):
    secrets = [(service.folder / "key.pem").read_text()[100:140], "a.session.token"]
    store = get_store(f"oci:{ADDRESS}", **options)
    backend = open_backend(f"oci:{ADDRESS}", **options)
    shown = [repr(store), repr(backend.checkpointer), repr(OCIOptions(**options))]
    assert shown[0] == f"OCIStore('{ADDRESS}')"
    assert not any(secret in text for secret in secrets for text in shown)
    await store.close()
    await backend.close()


async def test_an_unclosed_store_warns(options):
    store = OCIStore(ADDRESS, **options)
    await store.put(NS, "k", 1)
    held = [store]
    del store
    with pytest.warns(ResourceWarning, match=f"oci {ADDRESS} was never closed"):
        held.clear()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        OCIStore(ADDRESS, **options)


async def test_five_hundred_cancels_lose_no_acknowledged_put(options):
    async with OCIStore(ADDRESS, **options, pool_size=4) as store:
        acknowledged = 0
        for n in range(500):
            task = asyncio.create_task(store.put(NS, "k", n))
            for _ in range(n % 7):
                await asyncio.sleep(0)
            if n % 5:
                task.cancel()
            done = await asyncio.gather(task, return_exceptions=True)
            acknowledged += isinstance(done[0], int)
            item = await store.get_item(NS, "k")
            assert item is None or item.value <= n
        assert item.version >= acknowledged
        assert await store.put(NS, "k", "last") == item.version + 1


async def test_fifty_threads_of_one_pool(options):
    async with OCIStore(ADDRESS, **options, pool_size=50) as store:
        versions = await asyncio.gather(*(store.put(NS, f"k{n % 10}", n) for n in range(200)))
        assert sorted(versions) == sorted(list(range(1, 21)) * 10)


async def test_a_pool_that_is_exhausted(service, options):
    async with OCIStore(ADDRESS, **options, pool_size=1, acquire_timeout=0.3) as store:
        await store.put(NS, "k", 1)
        service.latency(1.0)
        slow = asyncio.create_task(store.get(NS, "k"))
        await asyncio.sleep(0.1)
        with pytest.raises(BackendUnavailableError, match="raise pool_size"):
            await store.get(NS, "k")
        assert await slow == 1


def run(code, *arguments):
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code, *arguments],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_only_object_storage_is_imported(options):
    code = """
import asyncio, json, sys
from locus_memory import get_store
assert "oci" not in sys.modules

async def main(options):
    async with get_store("oci:memory", **json.loads(options)) as store:
        await store.put(("a",), "k", 1)

asyncio.run(main(sys.argv[1]))
import oci.core, pkgutil
packages = [m.name for m in pkgutil.iter_modules(oci.__path__) if m.ispkg]
print(len(packages), *[m for m in packages if f"oci.{m}.models" in sys.modules])
"""
    count, *loaded = run(
        code.replace("import oci.core, pkgutil", "import pkgutil, oci"), json.dumps(options)
    )
    assert int(count) > 100
    assert "object_storage" in loaded
    assert len(loaded) <= 4, loaded


def test_doctor(options, tmp_path, service):
    text = (service.folder / "config").read_text()
    home = tmp_path / ".oci"
    home.mkdir()
    (home / "config").write_text(text)
    program = """
import sys
from locus_memory.backends.oci import options
endpoint, *sys.argv[1:] = sys.argv[1:]
options.OCIOptions.__init__.__kwdefaults__["service_endpoint"] = endpoint
from locus_memory.cli import main
main()
"""
    done = subprocess.run(
        [sys.executable, "-c", program, service.endpoint, "doctor", "--url", f"oci:{ADDRESS}"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "HOME": str(tmp_path), "COLUMNS": "100", "NO_COLOR": "1"},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"oci:{ADDRESS}" in done.stdout
