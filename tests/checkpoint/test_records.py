from __future__ import annotations

import zlib

import pytest

from locus_memory.checkpoint.encoding.dictionary import DICTIONARY
from locus_memory.checkpoint.record import Record, RecordHead
from locus_memory.errors import CheckpointCorruptError

HEAD = RecordHead(
    thread_id="t",
    checkpoint_id="c",
    revision=1,
    base=None,
    level=0,
    sequence=0,
    created_at=0.0,
    metadata={},
    size=0,
    stored_size=0,
)


def test_the_dictionary_never_changes():
    """Every record that was ever stored needs it."""
    assert (len(DICTIONARY), zlib.crc32(DICTIONARY)) == (1966, 1181148303)


def test_names_that_everybody_uses_take_little_space():
    document = b'["d",{"messages":["l",[3,[{"role":"user","content":"","id":""}]]]}]'
    record = Record.pack(document, HEAD, 6)
    assert record.unpack()[0][1]["messages"][0] == "l"
    assert record.stored_size < len(zlib.compress(document)) / 2


@pytest.mark.parametrize("level", [0, 1, 6, 9])
@pytest.mark.parametrize("size", [1, 50, 3000, 40_000, 200_000])
def test_any_size_at_any_level(level, size):
    text = "".join(chr(32 + number * number % 90) for number in range(size)).replace('"', "a")
    document = ('"' + text.replace("\\", "b") + '"').encode()
    assert Record.pack(document, HEAD, level).unpack()[0] == document.decode()[1:-1]


def test_another_dictionary_is_no_answer(monkeypatch):
    """What was written with one is not read with another."""
    record = Record.pack(b"[]", HEAD, 6)
    monkeypatch.setattr("locus_memory.checkpoint.record.DICTIONARY", DICTIONARY[1:])
    with pytest.raises(CheckpointCorruptError):
        record.unpack()
