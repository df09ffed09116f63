"""Addresses and options: what is refused, and that no message shows it."""

from __future__ import annotations

import sys

import pytest

from locus_memory.backends.oci.connection.address import parse_bucket
from locus_memory.backends.oci.options import OCIOptions
from locus_memory.errors import ConfigurationError, MissingDriverError
from locus_memory.registry import get_checkpointer, get_store, open_backend


@pytest.mark.parametrize(
    ("where", "found"),
    [
        ("memory", ("memory", None)),
        ("my.bucket_1-x", ("my.bucket_1-x", None)),
        ("memory/axaxnpcrorw5", ("memory", "axaxnpcrorw5")),
        ("oci://memory@axaxnpcrorw5", ("memory", "axaxnpcrorw5")),
        ("OCI://memory", ("memory", None)),
    ],
)
def test_addresses(where, found):
    assert parse_bucket(where) == found


@pytest.mark.parametrize(
    "where", [None, "", "/", "a/", "/b", "a/b/c", "a b", "oci://", "oci://a@", "a@b", "a\n", "../x"]
)
def test_what_is_no_address_is_refused(where):
    with pytest.raises(ConfigurationError, match="'oci:bucket/namespace'"):
        parse_bucket(where)


def test_what_is_refused_is_not_shown():
    with pytest.raises(ConfigurationError) as caught:
        parse_bucket("oci://user:secret@host/path")
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("prefix", ["locus", "locus/", "a/b.c/d_e-f", "x" * 63])
def test_prefixes(prefix):
    assert OCIOptions(prefix=prefix).prefix == prefix.rstrip("/") + "/"


@pytest.mark.parametrize(
    "prefix",
    [
        *("", "/", "/a", "a//b", ".", "..", "a/../b", ".a", "é", "a b", "a\nb", "x" * 64),
        *("items", "a/threads/b", "packs"),
    ],
)
def test_what_is_no_prefix_is_refused(prefix):
    with pytest.raises(ConfigurationError, match="oci: prefix"):
        OCIOptions(prefix=prefix)


@pytest.mark.parametrize(
    "options",
    [
        {"authentication": "password"},
        {"pool_size": 0},
        {"pool_size": True},
        {"attempts": 0},
        {"read_timeout": 0},
        {"connect_timeout": -1},
        {"acquire_timeout": float("nan")},
        {"retry_seconds": -1},
        {"region": 5},
        {"service_endpoint": "localhost:80"},
        {"service_endpoint": "http://user:password@host"},
        {"service_endpoint": "http://host/path"},
        {"service_endpoint": "http://host?query"},
        {"service_endpoint": "http://host:99999"},
    ],
)
def test_an_option_that_cannot_work_is_refused(options):
    with pytest.raises(ConfigurationError) as caught:
        OCIOptions(**options)
    assert "user:password" not in str(caught.value)


@pytest.mark.parametrize("make", [get_store, get_checkpointer, open_backend])
def test_without_the_sdk_the_error_names_the_extra(make, monkeypatch):
    monkeypatch.setitem(sys.modules, "oci", None)
    monkeypatch.delitem(sys.modules, "oci.object_storage", raising=False)
    with pytest.raises(MissingDriverError, match=r"^oci: needs the 'oci' extra: pip install"):
        make("oci:memory/namespace")
