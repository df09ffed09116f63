"""An archive holds everything of a backend, and one that is not as it was written is refused."""

from __future__ import annotations

import asyncio
import json
import zipfile
from hashlib import sha256

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from locus_memory.errors import ArchiveError, ConfigurationError
from locus_memory.registry import open_backend
from locus_memory.transfer import MigrateOptions, check_archive, read_archive, write_archive
from locus_memory.transfer.archive.format import MANIFEST, SEAL, Entry, Manifest, seal_of
from tests.transfer.conftest import HOSTILE, ITEMS, contents, fill_items, fill_threads


@pytest.mark.slow
@pytest.mark.parametrize("kind", ITEMS)
async def test_everything_comes_back(opened, tmp_path, kind):
    path = tmp_path / "all.zip"
    async with opened(kind, "a.db") as one, opened("sqlite", "b.db") as other:
        await fill_items(one.store)
        await fill_threads(one.checkpointer)
        manifest = await write_archive(one, path)
        assert manifest == check_archive(path)
        report = await read_archive(path, other)
        assert (report.items, report.checkpoints) == (
            manifest.count("items"),
            manifest.count("thread"),
        )
        assert await contents(other) == await contents(one)
        vector = await other.store.get_embedding(("vectors",), "v")
        assert vector == pytest.approx([0.6, 0.8, 0.0], abs=1e-2)
        again = await read_archive(path, other)
        assert (again.items, again.checkpoints, again.conflicts) == (0, 0, [])
        assert again.known_items == report.items


@pytest.mark.slow
async def test_a_file_has_threads_alone(opened, tmp_path):
    path = tmp_path / "threads.zip"
    async with opened("file", "a") as one, opened("file", "b") as other:
        await fill_threads(one.checkpointer)
        await write_archive(one, path)
        await read_archive(path, other)
        assert await contents(other) == await contents(one)


@pytest.fixture
async def archive(opened, tmp_path):
    """An archive of all forms of items and threads."""
    path = tmp_path / "all.zip"
    async with opened("sqlite", "source.db") as source:
        await fill_items(source.store)
        await fill_threads(source.checkpointer)
        await write_archive(source, path)
    return path


def rewritten(path, change):
    """Write an archive again with other files; `change` gets their contents by their names."""
    with zipfile.ZipFile(path) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    change(files)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)


def resealed(files, change):
    """Change the manifest, and its seal with it."""
    manifest = json.loads(files[MANIFEST])
    change(manifest)
    files[MANIFEST] = json.dumps(manifest).encode()
    files[SEAL] = seal_of(files[MANIFEST])


async def assert_refused(path, tmp_path, match):
    """Assert that neither a check nor an import takes the archive, and nothing is written."""
    with pytest.raises(ArchiveError, match=match):
        check_archive(path)
    async with open_backend(f"sqlite:{tmp_path / 'target.db'}") as target:
        with pytest.raises(ArchiveError, match=match):
            await read_archive(path, target)
        assert await contents(target) == {}


@pytest.mark.slow
async def test_it_is_read_by_people(archive):
    with zipfile.ZipFile(archive) as files:
        manifest = json.loads(files.read(MANIFEST))
        [entry] = [each for each in manifest["entries"] if each["name"] == list(HOSTILE)]
        assert entry["file"].startswith("items/")
        assert entry["file"].isascii()
        lines = [json.loads(line) for line in files.read(entry["file"]).splitlines()]
        assert [line["key"] for line in lines] == ["k1", "k2", "k0"]
        assert lines[-1]["value"] == {"n": 6, "t": "words of a fox"}
        assert sha256(files.read(entry["file"])).hexdigest() == entry["sha256"]


@pytest.mark.slow
async def test_a_truncated_archive_is_refused(archive, tmp_path):
    whole = archive.read_bytes()
    for length in (0, 10, len(whole) // 2, len(whole) - 1):
        archive.write_bytes(whole[:length])
        await assert_refused(archive, tmp_path, "truncated, or no archive")


@pytest.mark.slow
async def test_an_altered_entry_is_named(archive, tmp_path):
    def alter(files):
        [name] = [each for each in files if b'"big"' in files[each] and each != MANIFEST]
        files[name] = files[name].replace(b'"big"', b'"bug"')

    rewritten(archive, alter)
    await assert_refused(archive, tmp_path, r"items/\d+-users\.jsonl: its SHA-256")


@pytest.mark.slow
async def test_a_missing_and_a_further_entry_are_named(archive, tmp_path):
    rewritten(archive, lambda files: files.pop(min(files)))
    await assert_refused(archive, tmp_path, r"items/000001\S*: it is missing")
    rewritten(archive, lambda files: files.update({"items/extra.jsonl": b"{}\n"}))
    with pytest.raises(ArchiveError):
        check_archive(archive)


@pytest.mark.slow
async def test_an_altered_manifest_is_refused(archive, tmp_path):
    rewritten(archive, lambda f: f.update({MANIFEST: f[MANIFEST].replace(b"past", b"pest")}))
    await assert_refused(archive, tmp_path, "manifest.json: its SHA-256")


@pytest.mark.slow
async def test_a_newer_version_is_refused(archive, tmp_path):
    rewritten(archive, lambda files: resealed(files, lambda m: m.update({"version": 2})))
    await assert_refused(archive, tmp_path, "version 2, and this release reads up to 1")


@pytest.mark.slow
async def test_a_line_of_another_form_is_named(archive, tmp_path):
    def alter(files):
        manifest = json.loads(files[MANIFEST])
        [entry] = [each for each in manifest["entries"] if each["name"] == ["past"]]
        content = files[entry["file"]].replace(b'"version":41', b'"version":0')
        assert content != files[entry["file"]]
        files[entry["file"]] = content
        entry["bytes"], entry["sha256"] = len(content), sha256(content).hexdigest()
        resealed(files, lambda m: m.update({"entries": manifest["entries"]}))

    rewritten(archive, alter)
    await assert_refused(archive, tmp_path, r"-past\.jsonl: line \d: ")


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.integers(0, 10**9), st.integers(0, 7))
def test_a_flipped_bit_is_told_or_changes_nothing(small, tmp_path, place, bit):
    content = bytearray(small.read_bytes())
    content[place % len(content)] ^= 1 << bit
    flipped = tmp_path / "flipped.zip"
    flipped.write_bytes(content)
    try:
        manifest = check_archive(flipped)
    except ArchiveError:
        return
    # A moment or a mode in the zip itself, of which nothing depends.
    assert manifest == check_archive(small)


texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=9)
counts = st.integers(0, 2**53)
entries = st.builds(
    Entry, texts, st.just("items"), st.lists(texts, min_size=1).map(tuple), counts, counts, texts
) | st.builds(Entry, texts, st.just("thread"), st.tuples(texts), counts, counts, texts)
manifests = st.builds(Manifest, texts, texts, texts, st.lists(entries, max_size=4).map(tuple))
odd = st.sampled_from([None, True, -1, 1.5, 2**60, "", "x", [], [""], ["a", "b"], [None], {}])


@given(manifests)
def test_a_manifest_is_read_back(manifest):
    assert Manifest.from_bytes(manifest.to_bytes()) == manifest


@given(manifests, st.data())
def test_a_manifest_that_is_odd_anywhere_is_one_or_refused(manifest, data):
    document = json.loads(manifest.to_bytes())
    places = [document, *document["entries"]]
    place = data.draw(st.sampled_from(places))
    place[data.draw(st.sampled_from(sorted(place)))] = data.draw(odd)
    try:
        found = Manifest.from_bytes(json.dumps(document).encode())
    except ValueError:
        return
    assert Manifest.from_bytes(found.to_bytes()) == found
    for entry in found.entries:
        assert all(type(each) is int and each >= 0 for each in (entry.count, entry.size))
        assert all([entry.file, entry.digest, entry.name, *entry.name])
        assert entry.kind == "items" or len(entry.name) == 1


def test_a_zip_of_a_later_version_is_refused(small):
    content = bytearray(small.read_bytes())
    content[content.rindex(b"PK\1\2") + 6] = 109
    small.write_bytes(content)
    with pytest.raises(ArchiveError, match="zip file version"):
        check_archive(small)


@pytest.fixture
def small(tmp_path):
    """An archive of one item and one checkpoint."""

    async def write():
        async with open_backend("memory") as source:
            await source.store.put(("users", "ada"), "tea", {"likes": "oolong"})
            await source.checkpointer.save({"n": 1}, "talk")
            await write_archive(source, tmp_path / "small.zip")

    asyncio.run(write())
    return tmp_path / "small.zip"


async def test_newer_items_and_other_threads_of_the_target_stay(small):
    async with open_backend("memory") as target:
        await target.store.put(("users", "ada"), "tea", "newer")
        await target.checkpointer.save({"other": 1}, "talk")
        report = await read_archive(small, target)
        assert (report.items, report.kept_items, report.conflicts) == (0, 1, ["talk"])
        assert await target.store.get(("users", "ada"), "tea") == "newer"
        assert await target.checkpointer.load("talk") == {"other": 1}


async def test_a_part_and_a_dry_run(small):
    async with open_backend("memory") as target:
        report = await read_archive(small, target, MigrateOptions(dry_run=True))
        assert (report.items, report.checkpoints) == (1, 1)
        assert await contents(target) == {}
        report = await read_archive(small, target, MigrateOptions(only="items"))
        assert (report.items, report.checkpoints) == (1, 0)


async def test_a_file_is_replaced_only_when_asked(small):
    async with open_backend("memory") as source:
        with pytest.raises(ConfigurationError, match="exists"):
            await write_archive(source, small)
        assert check_archive(small).count("items") == 1
        await write_archive(source, small, overwrite=True)
        assert check_archive(small).count("items") == 0


async def test_a_write_that_fails_leaves_the_old_archive(small, tmp_path):
    def fail(progress):
        raise OSError("no room")

    async with open_backend("memory") as source:
        await source.store.put(("a",), "b", 1)
        with pytest.raises(OSError, match="no room"):
            await write_archive(source, small, overwrite=True, on_progress=fail)
    assert check_archive(small).count("items") == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["small.zip"]
