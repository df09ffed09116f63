"""What is configured badly about a bucket is told with a remedy."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

from locus_memory.errors import ConfigurationError
from locus_memory.registry import open_backend

pytestmark = pytest.mark.skipif(find_spec("oci") is None, reason="needs the SDK of OCI")

ADDRESS = "oci:memory/locustests"


@pytest.fixture
def service(oci_service):
    yield oci_service
    oci_service.about()


@pytest.fixture
async def backend(service):
    async with open_backend(ADDRESS, **service.options) as backend:
        await backend.store.put(("a",), "b", 1)
        yield backend


async def names(backend):
    found = await backend.advice()
    assert all(each.finding and each.remedy for each in found)
    return [each.name.removeprefix("oci.") for each in found]


@pytest.mark.slow
async def test_a_good_bucket_needs_none(backend):
    assert await names(backend) == []


async def test_what_a_user_may_not_ask_is_no_finding(backend, service):
    service.about(denied=True, bucket={"versioning": "Enabled"})
    assert await names(backend) == []


async def test_the_bucket(backend, service):
    bad = {"publicAccessType": "ObjectRead", "storageTier": "Archive"}
    service.about(bucket={**bad, "versioning": "Enabled", "isReadOnly": True})
    assert await names(backend) == ["public", "versioning", "archive", "read_only"]


@pytest.mark.slow
async def test_retention_rules(backend, service):
    rule = {"id": "1", "displayName": "legal hold"}
    service.about(retention=[rule])
    [found] = await backend.advice()
    assert (found.name, "legal hold" in found.finding) == ("oci.retention", True)


@pytest.mark.parametrize(
    ("changed", "is_found"),
    [
        ({}, True),
        ({"isEnabled": False}, False),
        ({"target": "previous-object-versions"}, False),
        ({"objectNameFilter": {"inclusionPrefixes": ["locus/items/"]}}, True),
        ({"objectNameFilter": {"inclusionPrefixes": ["lo"]}}, True),
        ({"objectNameFilter": {"inclusionPrefixes": ["logs/"]}}, False),
        ({"objectNameFilter": {"inclusionPatterns": ["locus/*"]}}, True),
        ({"objectNameFilter": {"inclusionPatterns": ["logs/*"]}}, False),
        ({"objectNameFilter": {"exclusionPatterns": ["locus/*"]}}, False),
    ],
)
async def test_lifecycle_rules(backend, service, changed, is_found):
    rule = {"name": "old", "target": "objects", "action": "DELETE", "isEnabled": True}
    service.about(lifecycle=[{**rule, "timeAmount": 30, "timeUnit": "DAYS", **changed}])
    assert await names(backend) == ["lifecycle"] * is_found


@pytest.mark.parametrize("ahead", [60, -60])
async def test_a_clock_that_differs(backend, service, ahead):
    service.about(clock=ahead)
    assert await names(backend) == ["clock"]


@pytest.mark.parametrize("ahead", [3600, -3600])
async def test_a_clock_that_is_so_far_off_that_requests_are_refused(service, ahead):
    service.about(clock=ahead)
    backend = open_backend(ADDRESS, **service.options)
    with pytest.raises(ConfigurationError, match="clock of this machine"):
        await backend.store.get(("a",), "b")
    [found] = await backend.advice()
    await backend.close()
    assert (found.name, "refuses requests" in found.finding) == ("oci.clock", True)


async def test_a_connection_that_is_not_encrypted(service):
    # This machine too, but nothing says so.
    endpoint = f"http://0.0.0.0:{service.port}"
    options = {**service.options, "service_endpoint": endpoint}
    async with open_backend(ADDRESS, **options) as backend:
        assert await names(backend) == ["unencrypted"]
