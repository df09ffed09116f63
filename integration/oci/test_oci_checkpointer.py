"""The checkpoints in OCI Object Storage keep the contract."""

from __future__ import annotations

import pytest
from served import prefix_of

from locus_memory.registry import get_checkpointer
from locus_memory.testing import CheckpointerConformance


class TestOCICheckpointer(CheckpointerConformance):
    @pytest.fixture(autouse=True)
    def server(self, bucket):
        self.where, self.options = bucket

    def make_checkpointer(self, clock, tmp_path, **options):
        return get_checkpointer(
            self.where, prefix=prefix_of(tmp_path), clock=clock, **self.options, **options
        )
