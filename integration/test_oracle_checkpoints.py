"""The checkpointer's contract, whole, over the driver of Oracle Database."""

from __future__ import annotations

from integration.oracle_tables import OnOracle
from locus_memory.registry import get_checkpointer
from locus_memory.testing import CheckpointerConformance


class TestOracleCheckpointer(OnOracle, CheckpointerConformance):
    def make_checkpointer(self, clock, tmp_path, **options):
        prefix = self.prefix(tmp_path)
        return get_checkpointer(self.url, table_prefix=prefix, clock=clock, **options)
