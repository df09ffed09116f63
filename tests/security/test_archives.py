"""No archive takes the memory or the time of the process that reads it."""

import time
import zipfile
from datetime import UTC, datetime
from hashlib import sha256

import orjson
import pytest

from locus_memory.errors import ArchiveError, InvalidArgumentError
from locus_memory.registry import open_backend
from locus_memory.store.item import Restored
from locus_memory.transfer import check_archive, read_archive
from locus_memory.transfer.archive.format import MANIFEST, SEAL, Entry, Manifest, seal_of
from locus_memory.transfer.archive.lines import item_line

MIB = 2**20


def _archive(path, contents, manifest=None):
    entries = tuple(
        Entry(f"items/{number}.jsonl", "items", (f"n{number}",), 1, len(line), digest)
        for number, line in enumerate(contents)
        for digest in [sha256(line).hexdigest()]
    )
    made = manifest or Manifest("1", "2026-01-01T00:00:00Z", "memory", entries).to_bytes()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for entry, line in zip(entries, contents, strict=True):
            archive.writestr(entry.file, line)
        archive.writestr(MANIFEST, made)
        archive.writestr(SEAL, seal_of(made))
    return path


def _line(value):
    moments = dict.fromkeys(("created_at", "updated_at"), datetime(2026, 1, 1, tzinfo=UTC))
    return item_line(Restored(namespace=("n0",), key="k", value=value, version=1, **moments))


async def test_a_small_file_holds_no_huge_value(tmp_path):
    path = _archive(tmp_path / "a.zip", [_line("x" * 17 * MIB)])
    assert path.stat().st_size < 100_000
    with pytest.raises(ArchiveError, match=r"line 1 has more than 16,777,216 bytes.*max_line"):
        check_archive(path)
    async with open_backend("memory") as target:
        with pytest.raises(ArchiveError, match="max_line"):
            await read_archive(path, target)
        report = await read_archive(path, target, max_line=18 * MIB)
    assert report.items == 1


def test_a_value_that_does_not_compress_may_be_larger(tmp_path):
    path = _archive(tmp_path / "a.zip", [_line("".join(f"{n * n:x}" for n in range(2000)))])
    assert check_archive(path, max_line=0).count("items") == 1


def test_a_small_manifest_is_not_unpacked(tmp_path):
    path = _archive(tmp_path / "a.zip", [], orjson.dumps({"format": "x" * 17 * MIB}))
    with pytest.raises(ArchiveError, match="too large"):
        check_archive(path)


def test_an_entry_that_begins_before_the_file_is_refused(tmp_path):
    path = _archive(tmp_path / "a.zip", [_line(1)])
    content = bytearray(path.read_bytes())
    # The offset of the central directory, in the record at the end.
    content[-6:-2] = (int.from_bytes(content[-6:-2], "little") + 100).to_bytes(4, "little")
    path.write_bytes(content)
    with pytest.raises(ArchiveError, match="begins before"):
        check_archive(path)


def test_the_bound_is_a_number(tmp_path):
    with pytest.raises(InvalidArgumentError, match="max_line"):
        check_archive(_archive(tmp_path / "a.zip", []), max_line=-1)


def test_the_names_of_many_entries_are_checked_at_once(tmp_path):
    path = _archive(tmp_path / "a.zip", [b"{}\n"] * 6000)
    started = time.process_time()
    with pytest.raises(ArchiveError, match="it is not an item"):
        check_archive(path)
    assert time.process_time() - started < 2
