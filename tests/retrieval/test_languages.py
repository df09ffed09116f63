"""Short notes in many languages are found by questions that inflect their words."""

from __future__ import annotations

import pytest

from tests.benchmarks.languages import measure, read

TWENTY = {"Chinese", "Japanese", "Korean", "Thai"}


@pytest.mark.parametrize("where", ["memory", "sqlite::memory:"])
async def test_notes_are_found_in_every_language(where):
    found = await measure(where, None, None)
    first = {name: sum(place == 0 for place in places) for name, places in found.items()}
    shares = {name: first[name] / len(places) for name, places in found.items()}
    assert sum(first.values()) / len(read()) >= 0.9
    assert {name for name in TWENTY if len(found[name]) < 20 or shares[name] < 0.95} == set()
    assert {name for name, share in shares.items() if share < 0.5} == set()
