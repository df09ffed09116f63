"""The checkpoints in OCI Object Storage keep the contract."""

from __future__ import annotations

from served import prefix_of

from locus_memory.registry import get_checkpointer
from locus_memory.testing import CheckpointerConformance


class TestOCICheckpointer(CheckpointerConformance):
    def make_checkpointer(self, clock, tmp_path, **options):
        where, given = self.bucket
        return get_checkpointer(where, prefix=prefix_of(tmp_path), clock=clock, **given, **options)
