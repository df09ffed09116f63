"""The base of all parts of the suite of trees: fixtures and strategies."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final

import pytest_asyncio
from hypothesis import strategies as st

from locus_memory.resources.tree import MemoryTree
from locus_memory.resources.uri import MemoryURI
from locus_memory.store.base import BaseStore
from locus_memory.testing.fakes import FakeClock
from locus_memory.testing.store_suite.base import HOSTILE, StoreSuite

__all__ = ["TreeSuite", "names", "texts", "uri_of"]

_HARD: Final = [each for each in HOSTILE if each not in (".", "..")]

names: Final = st.sampled_from(["a", "b", "a/b", "a.b", "A", "🦊", "\x00", "x" * 1000]) | (
    st.sampled_from(_HARD)
)
"""Names with a slash, an emoji, a NUL character, and 1,000 characters."""

texts: Final = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
"""Any text."""


def uri_of(*segments: str) -> str:
    """Return the URI of a path."""
    return str(MemoryURI(segments))


class TreeSuite(StoreSuite):
    """The fixtures of the suite; see `locus_memory.testing.MemoryTreeConformance`."""

    @pytest_asyncio.fixture
    async def tree(self, store: BaseStore, clock: FakeClock) -> AsyncIterator[MemoryTree]:
        """An empty tree of no user, whose prefix no other test of this run uses."""
        async with MemoryTree(store, prefix=self.fresh(), clock=clock) as tree:
            yield tree
