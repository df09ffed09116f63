"""Commands that die at any moment leave no half, and the next run completes them.

Archives, backups, compacting, the audit of a deletion, new vectors and forgetting; the others are
in `test_transfer_kills.py`, `test_rotation_kills.py` and `test_retention_kills.py`.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import random
import struct
import subprocess
import sys
import time

import pytest

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


def kill(*arguments, has_begun, seconds):
    """Kill a command some seconds after it has begun; return whether it was still running."""
    process = subprocess.Popen(
        [*COMMAND, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    while process.poll() is None and not has_begun():
        time.sleep(0.002)
    time.sleep(seconds)
    process.kill()
    return process.wait() < 0


def kill_often(*arguments, has_begun, longest, check, prepare=lambda: None):
    """Kill a command at moments from its beginning to its end, and check after each."""
    killed = 0
    for number in range(KILLS):
        prepare()
        killed += kill(*arguments, has_begun=has_begun, seconds=longest * number / KILLS)
        check()
    assert killed > 1, killed


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

    def has_begun():
        return any(tmp_path.glob("all.zip.part-*"))

    kill_often(*command, has_begun=has_begun, longest=longest * 0.9, check=check)
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

    def has_begun():
        return any(tmp_path.glob("saved.db.part-*"))

    kill_often(*command, has_begun=has_begun, longest=longest * 0.9, check=check)
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

    kill_often(*command, has_begun=has_begun, longest=longest * 0.9, check=check, prepare=prepare)
    assert set(found) <= {(300, 0), (ITEMS, THREADS * TURNS)}
    assert (300, 0) in found
    run(*command)
    assert asyncio.run(same(source, target))


def test_a_restoration_to_a_new_file_has_its_name_once_it_is_whole(source, tmp_path):
    saved, target = tmp_path / "saved.db", tmp_path / "target.db"
    run("--url", f"sqlite:{source}", "backup", str(saved))
    command = ["--url", f"sqlite:{target}", "restore", str(saved), "--force"]

    def has_begun():
        return any(tmp_path.glob("target.db.part-*"))

    longest = seconds_since(command, has_begun)

    def remove():
        for path in tmp_path.glob("target.db*"):
            path.unlink()

    def check():
        assert not target.exists() or asyncio.run(same(source, target))

    remove()
    kill_often(*command, has_begun=has_begun, longest=longest * 0.9, check=check, prepare=remove)
    run(*command)
    assert asyncio.run(same(source, target))


@pytest.fixture
def shortened(source, tmp_path):
    """A copy of the database in which a word and much else is deleted, but not erased."""
    path = tmp_path / "agent.db"
    run("--url", f"sqlite:{source}", "backup", str(path))

    async def delete():
        async with open_backend(f"sqlite:{path}", state_type=None) as backend:
            await backend.store.put(("secrets",), "s", {"text": "zanzibarine"})
            await backend.store.delete(("secrets",), "s")
            await backend.store.clear_namespace(("n1", "x"))
            await backend.checkpointer.delete("t1")
            return await count(backend)

    return path, asyncio.run(delete())


def test_compacting_loses_nothing(shortened):
    path, kept = shortened
    compact = ["--url", f"sqlite:{path}", "compact"]
    audit = ["--url", f"sqlite:{path}", "audit-deletion", "zanzibarine"]

    def check():
        assert asyncio.run(damaged(f"sqlite:{path}")) == []
        assert asyncio.run(counted(path)) == kept

    kill_often(*compact, has_begun=writes_to(path), longest=0.5, check=check)
    sizes = run(*compact)[0]["disk_bytes"]
    assert sizes["after"] <= sizes["before"]
    check()
    assert run(*audit)[0]["proven"]


def test_an_audit_changes_nothing(shortened):
    path, kept = shortened
    before, names = digest(path), sorted(each.name for each in path.parent.iterdir())
    audit = ["--url", f"sqlite:{path}", "audit-deletion", "zanzibarine"]
    _, startup = run("--url", f"sqlite:{path}", "ls")
    assert digest(path) == before
    started = time.monotonic()

    def has_begun():
        return time.monotonic() - started > startup * 0.5

    def prepare():
        nonlocal started
        started = time.monotonic()

    def check():
        assert digest(path) == before
        # SQLite's own files, of a process that could not delete them; they hold nothing.
        log = path.with_name("agent.db-wal")
        assert not log.exists() or log.stat().st_size == 0
        found = {each.name for each in path.parent.iterdir()}
        assert found <= {*names, "agent.db-wal", "agent.db-shm"}

    kill_often(*audit, has_begun=has_begun, longest=startup, check=check, prepare=prepare)
    assert asyncio.run(counted(path)) == kept
    assert sorted(each.name for each in path.parent.iterdir()) == names


WORDS = 1_200


def write_model(folder, vectors):
    """Write a model that is a table of vectors, one a word; return its name."""
    folder.mkdir()
    numbers = [number for vector in vectors.values() for number in vector]
    shape = [len(vectors), len(numbers) // len(vectors)]
    tensor = {"dtype": "F32", "shape": shape, "data_offsets": [0, 4 * len(numbers)]}
    header = json.dumps({"embeddings": tensor}).encode()
    body = struct.pack(f"<Q{len(header)}s{len(numbers)}f", len(header), header, *numbers)
    (folder / "model.safetensors").write_bytes(body)
    model = {"type": "WordPiece", "unk_token": "[UNK]"}
    model["vocab"] = {word: place for place, word in enumerate(vectors)}
    tokenizer = {"model": model, "normalizer": {"type": "BertNormalizer", "lowercase": True}}
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
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


def test_forgetting_a_user_is_completed_by_the_next_run(tmp_path):
    url = f"sqlite:{tmp_path / 'agent.db'}"

    async def store_users():
        async with open_backend(url, state_type=None) as backend:
            for user in ("ada", "bob"):
                for part in ("memories", "notes", "more"):
                    rows = [(("users", user, part), f"{n}", f"{user} {n}") for n in range(500)]
                    await backend.store.put_batch(rows)
                for n in range(30):
                    metadata = {"user_id": user}
                    for turn in range(3):
                        state = {"messages": [], "turn": turn}
                        await backend.checkpointer.save(state, f"{user}-{n}", f"c{turn}", metadata)

    async def left():
        """Return how much there is of each user."""
        async with open_backend(url, state_type=None) as backend:
            threads = await backend.checkpointer.list_threads()
            found = {}
            for user in ("ada", "bob"):
                namespaces = await backend.store.list_namespaces(prefix=("users", user))
                items = [len(await backend.store.list_keys(each, 1000)) for each in namespaces]
                own = [each for each in threads if each.startswith(user)]
                found[user] = sum(items) + len(own)
        return found

    asyncio.run(store_users())
    command = ["--url", url, "forget", "--user", "ada", "--yes"]
    counts = []

    def check():
        assert asyncio.run(damaged(url)) == []
        found = asyncio.run(left())
        assert found["bob"] == 1530
        counts.append(found["ada"])

    has_begun = writes_to(tmp_path / "agent.db")
    kill_often(*command, has_begun=has_begun, longest=0.1, check=check)
    assert counts == sorted(counts, reverse=True)
    subprocess.run([*COMMAND, *command, "--json"], check=bool(counts[-1]), capture_output=True)
    assert asyncio.run(left()) == {"ada": 0, "bob": 1530}
