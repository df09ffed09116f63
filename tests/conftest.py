from __future__ import annotations

import pytest

pytest.register_assert_rewrite("locus_memory.testing")


@pytest.fixture(autouse=True)
def no_settings_of_the_developer(monkeypatch):
    monkeypatch.delenv("LOCUS_MEMORY_URL", raising=False)
    monkeypatch.delenv("LOCUS_MEMORY_DEBUG", raising=False)
