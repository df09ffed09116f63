"""Stores of the adapter for py-key-value on every kind of database."""

from __future__ import annotations

import pytest

pytest.importorskip("key_value.aio")

from locus_memory import open_backend
from locus_memory.integrations.key_value import LocusKeyValue


@pytest.fixture
async def stores(provider):
    """Makes stores over one database of each kind."""
    url, options = provider
    async with open_backend(url, **options) as backend:
        yield lambda **given: LocusKeyValue(backend, **given)
