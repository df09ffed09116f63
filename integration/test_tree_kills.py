"""Storms on one tree: writers that are killed, and writers in several processes at once.

The state machine of the suite also runs for many lives.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys

import pytest
from hypothesis import settings

from locus_memory.backends.sqlite.store import SQLiteStore
from locus_memory.resources.tree import MemoryTree
from locus_memory.resources.uri import MemoryURI
from locus_memory.testing.tree_suite.model import TREE_LIVES, live
from tests.resources.test_kills import storm

KILLS = pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")

WRITER = """
import asyncio, random, sys
from locus_memory.errors import MemoryConflict, MemoryNotFound
from locus_memory.resources.tree import MemoryTree

URIS = [f"memory://{path}" for path in ("a", "a/b", "a/b/c", "a/d", "x/y")]

async def main(path, me):
    random.seed(me)
    async with MemoryTree(f"sqlite:{path}") as tree:
        for n in range(200):
            uri, chance = random.choice(URIS), random.random()
            try:
                if chance < 0.6:
                    await tree.write(uri, f"{me}-{n}")
                elif chance < 0.8:
                    await tree.delete(uri)
                else:
                    await tree.move(uri, random.choice([*URIS, "memory://z/q"]))
            except (MemoryConflict, MemoryNotFound):
                pass

asyncio.run(main(sys.argv[1], sys.argv[2]))
"""


@pytest.mark.slow
@KILLS
def test_no_kill_leaves_half_an_entry(tmp_path):
    storm(tmp_path / "tree.db", 40)


def test_writers_in_four_processes_never_make_a_name_an_entry_and_a_folder(tmp_path):
    path = tmp_path / "tree.db"
    command = [sys.executable, "-c", WRITER, str(path)]
    writers = [subprocess.Popen([*command, str(n)]) for n in range(4)]
    assert [writer.wait() for writer in writers] == [0] * 4
    asyncio.run(check(path))


@pytest.mark.slow
def test_a_tree_behaves_like_a_dict_for_many_lives(tmp_path):
    lives = settings(TREE_LIVES, max_examples=150, stateful_step_count=50)
    live(SQLiteStore(tmp_path / "tree.db"), lives)


async def check(path):
    """Check that each folder has an entry, each name is one thing, and nothing is left over."""
    async with MemoryTree(f"sqlite:{path}") as tree:
        entries = (await tree.tree(depth=9)).entries
        leaves = {each.uri for each in entries if not each.is_dir}
        folders = {each.uri for each in entries if each.is_dir}
        assert leaves
        assert all(any(leaf.startswith(folder) for leaf in leaves) for folder in folders)
        assert not {folder.rstrip("/") for folder in folders} & leaves
        for space in await tree.store.list_namespaces(("memory",), 9999):
            if space[1] in ("chunks", "versions"):
                assert str(MemoryURI(space[2:])) in leaves
