"""A process that is killed leaves each entry old or new, and no level or chunk of another text."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time

import pytest

from locus_memory.backends.sqlite.store import SQLiteStore
from locus_memory.resources.levels.rules import levels_of
from locus_memory.resources.storing.nodes import digest_of
from locus_memory.resources.tree import MemoryTree
from locus_memory.resources.uri import MemoryURI

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")

WRITER = """
import asyncio, sys
from locus_memory.errors import MemoryConflict, MemoryNotFound
from locus_memory.resources.tree import MemoryTree

async def main(path, start):
    async with MemoryTree(f"sqlite:{path}") as tree:
        for n in range(start, 10**9):
            text = f"# Text {n}\\n\\n" + f"word{n} stands here. " * (1 + n % 900)
            uri = f"memory://f{n % 3}/e{n % 5}"
            try:
                await tree.write(uri, text)
                if n % 7 == 0:
                    await tree.delete(uri)
                if n % 11 == 0:
                    await tree.move(f"memory://f{n % 3}/e{(n + 1) % 5}", f"memory://g/m{n % 4}")
            except (MemoryConflict, MemoryNotFound):
                pass
            if n == start + 5:
                print("going", flush=True)

asyncio.run(main(sys.argv[1], int(sys.argv[2])))
"""


async def check(path):
    """Check every entry, its levels, its chunks and its history; return how many there are."""
    async with SQLiteStore(path) as store:
        tree = MemoryTree(store)
        plans = tree._plans
        listed = (await tree.tree(depth=9)).entries
        entries = [MemoryURI.parse(each.uri) for each in listed if not each.is_dir]
        parents = {str(uri.parent) for uri in entries}
        assert {each.uri for each in listed if each.is_dir} == parents
        known = set()
        for uri in entries:
            entry, _ = await plans.entry(uri.segments)
            number = entry.content.split(None, 3)[2]
            assert set(entry.content.split()) <= {
                "#",
                "Text",
                number,
                f"word{number}",
                "stands",
                "here.",
            }
            assert entry.digest == digest_of(entry.content)
            assert entry.levels == levels_of(entry.content, entry.digest)
            space = plans.places.chunks(uri.segments)
            chunks = await store.scan(space, 1000)
            assert len(chunks) == entry.chunks
            assert {each.metadata["digest"] for each in chunks} == {entry.digest}
            past = await store.scan(plans.places.history(uri.segments), 1000)
            assert [each.value["revision"] for each in past] == list(
                range(max(1, entry.revision - 10), entry.revision)
            )
            hits = (await tree.find(f"word{number}", uri)).hits
            assert [each.uri for each in hits] == [str(uri)]
            known |= {space, plans.places.history(uri.segments)}
        left = [
            n
            for n in await store.list_namespaces(("memory",), 9999)
            if n[1] in ("chunks", "versions")
        ]
        assert set(left) <= known
        return len(entries)


def storm(path, kills):
    """Kill one writer after the other; check after each of them."""
    found = []
    for n in range(kills):
        process = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(path), str(1000 * n)], stdout=subprocess.PIPE
        )
        assert process.stdout.readline() == b"going\n"
        time.sleep(0.03 * (n % 9))
        process.kill()
        process.wait()
        process.stdout.close()
        found.append(asyncio.run(check(path)))
    assert max(found) > 3


@pytest.mark.slow
def test_each_entry_is_old_or_new(tmp_path):
    storm(tmp_path / "tree.db", 2)
