"""The bucket of these tests: a real one that `LOCUS_TEST_OCI_URL` names, else a local service."""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "backends" / "oci"))

from served import ADDRESS, Served, prefix_of


@pytest.fixture(scope="session", autouse=True)
def sdk():
    """Skip the tests where the SDK is not installed."""
    if find_spec("oci") is None:
        pytest.skip("needs the SDK of OCI, of 500 MB: the extra 'live' has it")


@pytest.fixture(scope="session")
def service(sdk):
    """A local service, which can be told to fail."""
    with Served() as served:
        yield served


@pytest.fixture(autouse=True)
def no_faults(request):
    """Forget the planned failures after each test."""
    yield
    if "service" in request.fixturenames:
        served = request.getfixturevalue("service")
        served.plan()
        served.latency(0)


@pytest.fixture(scope="session")
def bucket(request):
    """The provider string of a bucket, and the options of a connection."""
    if url := os.environ.get("LOCUS_TEST_OCI_URL"):
        return url, {}
    return f"oci:{ADDRESS}", request.getfixturevalue("service").options


@pytest.fixture(autouse=True)
def bucket_of_a_suite(request, bucket):
    """Tell the conformance suites where the bucket is."""
    if request.instance is not None:
        request.instance.bucket = bucket


@pytest.fixture
def prefix(tmp_path):
    """A prefix of this test alone."""
    return prefix_of(tmp_path)


@pytest.fixture
def options(service, prefix):
    """The options of a connection to the local service."""
    return {**service.options, "prefix": prefix}
