"""The relevance of a hit is the same on OpenSearch 3 and 2 as in memory."""

from __future__ import annotations

import hashlib

import pytest

from locus_memory.backends.opensearch import OpenSearchStore
from locus_memory.testing import FakeEmbedder
from tests.conformance.test_relevance import check_relevances


@pytest.mark.parametrize("has_vectors", [False, True])
async def test_the_relevance_is_that_of_the_store_in_memory(opensearch_url, tmp_path, has_vectors):
    prefix = f"t{hashlib.sha256(str(tmp_path).encode()).hexdigest()[:16]}"
    hosts = opensearch_url.partition(":")[2]
    async with OpenSearchStore(hosts, index_prefix=prefix) as store:
        await check_relevances(store, FakeEmbedder() if has_vectors else None)
