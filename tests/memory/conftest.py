from __future__ import annotations

import pytest

from locus_memory.events import subscribe


@pytest.fixture
def events():
    """The events of the test, in order."""
    seen = []
    unsubscribe = subscribe(seen.append)
    yield seen
    unsubscribe()
