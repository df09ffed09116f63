from __future__ import annotations

import pytest

from locus_memory.backends.inmemory.store import InMemoryStore
from locus_memory.errors import ConfigurationError
from locus_memory.testing import StoreConformance


class TestInMemoryStore(StoreConformance):
    def make_store(self, clock, tmp_path):
        return InMemoryStore(clock=clock)


@pytest.mark.parametrize("dimension", [0, -1])
def test_a_dimension_that_cannot_be_is_refused(dimension):
    with pytest.raises(ConfigurationError, match="embedding_dimension >= 1"):
        InMemoryStore(embedding_dimension=dimension)
