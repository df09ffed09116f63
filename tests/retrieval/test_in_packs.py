"""Packs of what has a size."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from locus_memory.retrieval.pack import in_packs


@given(sizes=st.lists(st.integers(0, 9), max_size=20), room=st.integers(0, 12))
def test_packs_keep_the_order_and_the_room(sizes: list[int], room: int) -> None:
    """Each takes as many as it can; only one that is alone is too large."""
    packs = in_packs(sizes, lambda size: size, room)
    assert [size for pack in packs for size in pack] == sizes
    for pack in packs:
        assert pack[0] == sum(pack) or sum(pack) <= room
    for pack, following in pairwise(packs):
        assert sum(pack) + following[0] > room
