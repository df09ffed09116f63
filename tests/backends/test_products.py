"""Products of a query with rows are right to float32, with BLAS and without."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from locus_memory.backends import products as module
from locus_memory.backends.products import products


@pytest.fixture(params=["alone", "blas"])
def few(request, monkeypatch):
    if request.param == "blas":
        monkeypatch.setattr(module, "_ALONE", 0)


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("count", [0, 1, 7, 1_000])
def test_products_are_those_of_float64(count):
    random = np.random.default_rng(count)
    rows = random.standard_normal((count, 384)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    query = random.standard_normal(384).astype(np.float32)
    query /= np.linalg.norm(query)
    found = products(rows, query)
    assert found.dtype == np.float32
    assert found == pytest.approx(rows.astype(np.float64) @ query.astype(np.float64), abs=1e-6)


@given(st.integers(1, 40), st.integers(1, 400), st.integers(0, 2**32))
def test_equal_rows_have_equal_products_at_any_place(count, dimension, seed):
    random = np.random.default_rng(seed)
    row = random.standard_normal(dimension).astype(np.float32)
    query = random.standard_normal(dimension).astype(np.float32)
    assert len(set(products(np.tile(row, (count, 1)), query).tolist())) == 1
