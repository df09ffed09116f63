"""A folder of the version before has all of its checkpoints."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

from locus_memory.backends.file.checkpoints import FileCheckpointer

FORMER = Path(__file__).parent / "former"
"""The folder, and what the version that wrote it read from it."""


async def test_a_folder_written_by_the_version_before_opens(tmp_path):
    with zipfile.ZipFile(FORMER / "former.zip") as archive:
        archive.extractall(tmp_path / "runs")
    expected = json.loads((FORMER / "former.json").read_text())
    async with FileCheckpointer(tmp_path / "runs", state_type=None) as checkpointer:
        assert set(await checkpointer.list_threads(limit=100)) == set(expected)
        for thread, rows in expected.items():
            assert await checkpointer.list_checkpoints(thread, limit=100) == [
                row[0] for row in rows
            ]
            for checkpoint, state in rows:
                assert await checkpointer.load(thread, checkpoint) == state
        await checkpointer.save({"n": 1}, "plain")
        assert await checkpointer.load("plain") == {"n": 1}
