from __future__ import annotations

from collections import Counter

import pytest

from locus_memory.testing import FakeClock, StoreConformance


def test_no_test_of_the_suite_hides_another():
    names = Counter(
        name for part in StoreConformance.__mro__ for name in vars(part) if name.startswith("test_")
    )
    assert [name for name, count in names.items() if count > 1] == []
    assert len(names) > 100


def test_a_suite_needs_a_store(tmp_path):
    with pytest.raises(NotImplementedError):
        StoreConformance().make_store(FakeClock(), tmp_path)


def test_the_clock_moves_when_it_is_told():
    clock = FakeClock(100)
    clock.advance(2.5)
    assert clock() == 102.5
    clock.set(50)
    assert clock() == clock.now == 50
