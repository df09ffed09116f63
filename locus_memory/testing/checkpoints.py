"""The conformance suite of checkpointers."""

from __future__ import annotations

from locus_memory.testing.checkpoint_suite.edits import EditTests
from locus_memory.testing.checkpoint_suite.forks import ForkTests
from locus_memory.testing.checkpoint_suite.machine import MachineTests
from locus_memory.testing.checkpoint_suite.races import ConflictTests, RaceTests, SecondProcessTests
from locus_memory.testing.checkpoint_suite.removal import (
    BranchTests,
    ChainTests,
    ListingTests,
    RemovalTests,
)
from locus_memory.testing.checkpoint_suite.restoring import RestoreTests
from locus_memory.testing.checkpoint_suite.saving import NamingTests, SavingTests, StateTests

__all__ = ["CheckpointerConformance"]


class CheckpointerConformance(
    SavingTests,
    StateTests,
    EditTests,
    NamingTests,
    RemovalTests,
    ListingTests,
    BranchTests,
    ForkTests,
    ChainTests,
    RestoreTests,
    ConflictTests,
    RaceTests,
    SecondProcessTests,
    MachineTests,
):
    """The rules of the checkpointer contract as tests: subclass it and define `make_checkpointer`.

    ```python
    class TestMyCheckpointer(CheckpointerConformance):
        def make_checkpointer(self, clock, tmp_path, **options):
            return DeltaCheckpointer(MyStorage(tmp_path), clock=clock, **options)
    ```

    Called twice with one `tmp_path`, it returns two checkpointers that share their data, like two
    processes. A test is skipped only if `capabilities` lacks its capability.
    """
