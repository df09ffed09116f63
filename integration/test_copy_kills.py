"""Copies that die at any moment leave no half, and the next run completes them.

Archives, backups and new vectors; the table in `tests/cli/test_table.py` names the tests of the
other commands.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import random
import signal
import sqlite3
import struct
import subprocess
import sys
import time
from contextlib import closing

import pytest

from integration.killing import killed_at
from locus_memory.errors import ArchiveError
from locus_memory.integrity import verify
from locus_memory.registry import open_backend
from locus_memory.retrieval.embedders import get_embedder
from locus_memory.store.wrappers import EmbeddingStore
from locus_memory.transfer import MigrateOptions, check_archive, migrate

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")

KILLS = 5
ITEMS, THREADS, TURNS = 600, 5, 30
COMMAND = [sys.executable, "-m", "locus_memory.cli"]


def row(n):
    # Large enough that a copy takes a while, and not to be compressed.
    return {"n": n, "noise": random.Random(n).randbytes(8_000).hex()}


async def fill(url):
    async with open_backend(url, state_type=None) as backend:
        for start in range(0, ITEMS, 300):
            rows = [((f"n{n % 7}", "x"), f"k{n}", row(n)) for n in range(start, start + 300)]
            await backend.store.put_batch(rows)
        await backend.store.put(("n0", "x"), "k0", {**row(0), "changed": True})
        for thread in range(THREADS):
            state = {"messages": []}
            for turn in range(TURNS):
                state["messages"].append(f"turn {turn} of {thread}")
                await backend.checkpointer.save(state, f"t{thread}", f"c{turn}")


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """The file of a database, which no test changes."""
    path = tmp_path_factory.mktemp("source") / "agent.db"
    asyncio.run(fill(f"sqlite:{path}"))
    return path


def run(*arguments):
    """Run a command; return its JSON, and the seconds that it takes."""
    started = time.monotonic()
    done = subprocess.run([*COMMAND, *arguments, "--json"], check=True, capture_output=True)
    return json.loads(done.stdout), time.monotonic() - started


def kill(*arguments, has_begun, seconds, is_unfinished):
    """Kill a command some seconds after it has begun.

    The command is stopped first: what is looked at then is what the kill leaves.

    Returns:
        Whether it was still running, and its work unfinished.
    """
    with subprocess.Popen(
        [*COMMAND, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        while process.poll() is None and not has_begun():
            time.sleep(0.002)
        time.sleep(seconds)
        process.send_signal(signal.SIGSTOP)
        # The process itself is left for `wait`.
        flags = os.WSTOPPED | os.WEXITED | os.WNOWAIT
        told = None if process.poll() is not None else os.waitid(os.P_PID, process.pid, flags)
        is_halfway = told is not None and told.si_code == os.CLD_STOPPED and is_unfinished()
        process.kill()
    return is_halfway


def kill_often(
    *arguments, has_begun, longest, check, prepare=lambda: None, is_unfinished=lambda: True
):
    """Kill a command at moments from its beginning to its end, and check after each."""
    halfway = 0
    for number in range(KILLS):
        prepare()
        seconds = longest * number / KILLS
        halfway += kill(
            *arguments, has_begun=has_begun, seconds=seconds, is_unfinished=is_unfinished
        )
        check()
    assert halfway, "no kill was in the middle"


def kill_before_it_is_named(path, *arguments, longest, **options):
    """Kill a command while it writes a file whose name it has once it is whole."""

    def has_begun():
        return any(path.parent.glob(f"{path.name}.part-*"))

    kill_often(
        *arguments,
        has_begun=has_begun,
        longest=longest * 0.9,
        is_unfinished=lambda: has_begun() and not path.exists(),
        **options,
    )


def watch(folder, pattern):
    """Return whether a file of this name has appeared since the call."""
    known = set(folder.glob(pattern))
    return lambda: bool(set(folder.glob(pattern)) - known)


def writes_to(path):
    """Return whether a process has begun to write to a file that was closed before."""
    log, journal = path.with_name(f"{path.name}-wal"), path.with_name(f"{path.name}-journal")
    return lambda: journal.exists() or (log.exists() and log.stat().st_size > 0)


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


async def damaged(url):
    async with open_backend(url, state_type=None) as backend:
        return [each async for each in verify(backend) if each.reason is not None]


async def same(one, two):
    """Whether two databases have the same items, moments and checkpoints; nothing is written."""
    async with open_backend(f"sqlite:{one}") as first, open_backend(f"sqlite:{two}") as second:
        report = await migrate(first, second, MigrateOptions(dry_run=True, merge=True))
        counted = [await count(each) for each in (first, second)]
    return report.written == 0 and counted[0] == counted[1]


def rows(path):
    """Return how many items a file has, as its other readers see it."""
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
        return connection.execute("SELECT count(*) FROM items").fetchone()[0]


async def count(backend):
    namespaces = await backend.store.list_namespaces()
    items = [len(await backend.store.list_keys(each, 10_000)) for each in namespaces]
    threads = await backend.checkpointer.list_threads()
    found = [len(await backend.checkpointer.list_checkpoints(each, 1000)) for each in threads]
    return sum(items), sum(found)


def seconds_since(arguments, has_begun):
    """Return how long an undisturbed command takes from its beginning to its end."""
    process = subprocess.Popen([*COMMAND, *arguments], stdout=subprocess.DEVNULL)
    while process.poll() is None and not has_begun():
        time.sleep(0.002)
    started = time.monotonic()
    assert process.wait() == 0
    return time.monotonic() - started


def test_an_archive_has_its_name_once_it_is_whole(source, tmp_path):
    archive = tmp_path / "all.zip"
    command = ["--url", f"sqlite:{source}", "export", "--format", "archive", "--output", archive]
    command = [*map(str, command), "--force"]
    longest = seconds_since(command, watch(tmp_path, "all.zip.part-*"))
    archive.unlink()

    def check():
        if archive.exists():
            assert check_archive(archive).count("items") == ITEMS
            archive.unlink()
        for part in tmp_path.glob("*.part-*"):
            with pytest.raises(ArchiveError):
                check_archive(part)
            part.unlink()

    kill_before_it_is_named(archive, *command, longest=longest, check=check)
    report, _ = run(*command)
    assert (report["items"], report["checkpoints"]) == (ITEMS, THREADS * TURNS)


def test_an_import_that_is_repeated_is_the_same_database(source, tmp_path):
    archive, copy = tmp_path / "all.zip", tmp_path / "copy.db"
    run("--url", f"sqlite:{source}", "export", "--format", "archive", "--output", str(archive))
    command = ["--url", f"sqlite:{copy}", "import", str(archive)]
    counts = []

    def check():
        # Each run goes on where the one before was killed.
        assert asyncio.run(damaged(f"sqlite:{copy}")) == []
        counts.append(asyncio.run(counted(copy)))

    kill_often(*command, has_begun=writes_to(copy), longest=0.2, check=check)
    assert counts == sorted(counts)
    assert any((0, 0) < each < (ITEMS, THREADS * TURNS) for each in counts), counts
    run(*command)
    assert asyncio.run(same(source, copy))
    report, _ = run(*command)
    assert (report["items"], report["checkpoints"]) == (0, 0)


async def counted(path):
    async with open_backend(f"sqlite:{path}") as backend:
        return await count(backend)


def test_a_backup_has_its_name_once_it_is_whole(source, tmp_path):
    saved, before = tmp_path / "saved.db", digest(source)
    command = ["--url", f"sqlite:{source}", "backup", str(saved), "--force"]
    longest = seconds_since(command, watch(tmp_path, "saved.db.part-*"))
    saved.unlink()

    def check():
        assert digest(source) == before
        if saved.exists():
            assert asyncio.run(same(source, saved))
            saved.unlink()
        for part in tmp_path.glob("*.part-*"):
            part.unlink()

    kill_before_it_is_named(saved, *command, longest=longest, check=check)
    # All pages are copied, and the copy has no name yet.
    killed_at("locus_memory.backends.sqlite.upkeep.backups:_report", 1, *command)
    assert not saved.exists()
    check()
    run(*command)
    assert asyncio.run(same(source, saved))
    assert digest(source) == before
    assert [each.name for each in tmp_path.iterdir()] == ["saved.db"]


def test_a_restoration_is_all_or_nothing(source, tmp_path):
    saved, target = tmp_path / "saved.db", tmp_path / "target.db"
    run("--url", f"sqlite:{source}", "backup", str(saved))

    async def renew():
        for path in tmp_path.glob("target.db*"):
            path.unlink()
        async with open_backend(f"sqlite:{target}") as backend:
            rows = [(("old",), f"{n}", row(n)) for n in range(300)]
            await backend.store.put_batch(rows)

    def prepare():
        asyncio.run(renew())

    has_begun = writes_to(target)
    command = ["--url", f"sqlite:{target}", "restore", str(saved), "--force"]
    prepare()
    longest = seconds_since(command, has_begun)
    found = []

    def check():
        assert asyncio.run(damaged(f"sqlite:{target}")) == []
        found.append(asyncio.run(counted(target)))

    def is_unfinished():
        return has_begun() and rows(target) == 300

    kill_often(
        *command,
        has_begun=has_begun,
        longest=longest * 0.9,
        check=check,
        prepare=prepare,
        is_unfinished=is_unfinished,
    )
    assert set(found) <= {(300, 0), (ITEMS, THREADS * TURNS)}
    assert (300, 0) in found
    # The backup is checked, and nothing is written.
    killed_at("locus_memory.backends.sqlite.upkeep.backups:_copy", 1, *command)
    check()
    assert found[-1] == found[-2]
    run(*command)
    assert asyncio.run(same(source, target))


def test_a_restoration_to_a_new_file_has_its_name_once_it_is_whole(source, tmp_path):
    saved, target = tmp_path / "saved.db", tmp_path / "target.db"
    run("--url", f"sqlite:{source}", "backup", str(saved))
    command = ["--url", f"sqlite:{target}", "restore", str(saved), "--force"]

    longest = seconds_since(command, watch(tmp_path, "target.db.part-*"))

    def remove():
        for path in tmp_path.glob("target.db*"):
            path.unlink()

    def check():
        assert not target.exists() or asyncio.run(same(source, target))

    kill_before_it_is_named(target, *command, longest=longest, check=check, prepare=remove)
    remove()
    killed_at("locus_memory.backends.sqlite.upkeep.backups:_report", 1, *command)
    assert not target.exists()
    run(*command)
    assert asyncio.run(same(source, target))


WORDS = 1_200


def write_model(folder, vectors):
    """Write a model that is a table of vectors, one a word; return its name."""
    tokenizers = pytest.importorskip("tokenizers")
    folder.mkdir()
    # The last row is that of unknown words.
    rows = [*vectors.values(), [0] * len(next(iter(vectors.values())))]
    numbers = [number for row in rows for number in row]
    shape = [len(rows), len(rows[0])]
    tensor = {"dtype": "F32", "shape": shape, "data_offsets": [0, 4 * len(numbers)]}
    header = json.dumps({"embeddings": tensor}).encode()
    body = struct.pack(f"<Q{len(header)}s{len(numbers)}f", len(header), header, *numbers)
    (folder / "model.safetensors").write_bytes(body)
    tokens = {word: place for place, word in enumerate([*vectors, "[UNK]"])}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel(tokens, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    tokenizer.save(str(folder / "tokenizer.json"))
    return f"static:{folder}"


def test_new_vectors_go_on_where_they_stopped(tmp_path):
    url = f"sqlite:{tmp_path / 'agent.db'}"
    old = write_model(tmp_path / "old", {"boat": [1, 0, 0], "doctor": [0, 1, 0]})
    new = write_model(tmp_path / "new", {"boat": [1, 0], "doctor": [0, 1]})

    async def store_words():
        async with open_backend(url) as backend:
            store = EmbeddingStore(backend.store, get_embedder(old))
            words = [(("notes",), f"{n:05}", f"boat {n} doctor") for n in range(WORDS)]
            await store.put_batch(words)

    async def lengths():
        """Return how many vectors there are of each length, and check the items."""
        async with open_backend(url) as backend:
            keys = await backend.store.list_keys(("notes",), WORDS)
            found = [len(await backend.store.get_embedding(("notes",), key)) for key in keys]
            values = await backend.store.get_batch([(("notes",), key) for key in keys])
        assert list(values.values()) == [f"boat {n} doctor" for n in range(WORDS)]
        return found.count(2), found.count(3)

    asyncio.run(store_words())
    command = ["--url", url, "reembed", "notes", "--embedder", new]
    done = []

    def check():
        now, before = asyncio.run(lengths())
        assert now + before == WORDS
        done.append(now)

    has_begun = writes_to(tmp_path / "agent.db")
    kill_often(*command, has_begun=has_begun, longest=0.1, check=check)
    assert done == sorted(done)
    assert any(0 < each < WORDS for each in done), done
    report, _ = run(*command)
    assert report["embedded"] + report["current"] == WORDS
    assert asyncio.run(lengths()) == (WORDS, 0)
