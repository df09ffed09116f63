"""Documents that hold bytes: framed beside the JSON, saved as deltas, and text to other readers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from locus_memory.checkpoint.base import RestoredCheckpoint
from locus_memory.checkpoint.chain import DeltaCheckpointer
from locus_memory.checkpoint.encoding.frames import dumps, is_frame, loads
from locus_memory.checkpoint.inmemory import InMemoryDeltaStorage
from locus_memory.checkpoint.record import FORMAT_VERSION, FRAMED_VERSION
from locus_memory.checkpoint.states import BytesDocument
from locus_memory.errors import CheckpointCorruptError
from locus_memory.store.item import timestamp

TEXTS = st.text(st.sampled_from('\0"\\a€'), max_size=4)
DOCUMENTS: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | TEXTS | st.binary(max_size=40),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=20,
)
HELD = st.dictionaries(st.integers(0, 9).map(str), st.binary(max_size=60), max_size=6)
STATES = st.builds(
    lambda rest, held: BytesDocument({**rest, "t": held}),
    st.dictionaries(TEXTS, TEXTS | st.lists(st.integers(0, 9)), max_size=3),
    HELD,
)


@given(st.lists(DOCUMENTS, max_size=5) | st.dictionaries(TEXTS, DOCUMENTS))
def test_any_document_comes_back(document):
    content = dumps(document)
    assert loads(content) == document
    assert repr(loads(content)) == repr(document)
    if not is_frame(content):
        assert content == orjson.dumps(document)


@pytest.mark.parametrize("value", [object(), {1}, bytearray(b"x"), memoryview(b"x")])
def test_another_value_is_refused(value):
    with pytest.raises(TypeError):
        dumps({"a": [b"x", value]})


@given(st.lists(STATES, min_size=1, max_size=6), st.sampled_from([0, 2, 64]))
async def test_states_with_bytes_are_saved_and_loaded(states, depth):
    storage = InMemoryDeltaStorage()
    checkpointer = DeltaCheckpointer(storage, depth, state_type=BytesDocument)
    for number, state in enumerate(states):
        await checkpointer.save(state, "t", str(number))
    fresh = DeltaCheckpointer(storage, depth, state_type=BytesDocument)
    if len(states) > 2:
        await fresh.delete("t", "1")
    for number, state in enumerate(states):
        loaded = await fresh.load("t", str(number))
        assert loaded == (None if number == 1 and len(states) > 2 else state)
    info = (await checkpointer.list_with_metadata("t", 1))[0]
    recalled = checkpointer.recall(info)
    assert recalled is None if depth == 0 else recalled == states[-1]


@given(STATES)
async def test_to_another_reader_the_bytes_are_text(state):
    storage = InMemoryDeltaStorage()
    await DeltaCheckpointer(storage, state_type=BytesDocument).save(state, "t")
    loaded = await DeltaCheckpointer(storage).load("t")
    assert loaded == {**state, "t": {k: v.decode("latin-1") for k, v in state["t"].items()}}
    assert orjson.loads(orjson.dumps(loaded)) == loaded
    # What that reader has can be restored.
    given = RestoredCheckpoint(
        checkpoint_id="1", state=loaded, metadata={}, created_at=timestamp(0), kind="bytes"
    )
    other = DeltaCheckpointer(state_type=BytesDocument)
    await other.restore("t", given)
    assert await other.load("t") == state


@pytest.mark.parametrize("held", [None, 5, ["a"], {"1": "€"}, {"1": 5}])
async def test_a_restored_document_that_holds_no_bytes_stays_as_it_is(held):
    given = RestoredCheckpoint(
        checkpoint_id="1", state={"t": held}, metadata={}, created_at=timestamp(0), kind="bytes"
    )
    for state_type in (BytesDocument, None):
        checkpointer = DeltaCheckpointer(state_type=state_type)
        await checkpointer.restore("t", given)
        assert await checkpointer.load("t") == {"t": held}


async def test_a_record_with_bytes_says_so_to_earlier_versions():
    """They read its first byte, and the checksum says that a later version wrote it."""
    checkpointer = DeltaCheckpointer(state_type=BytesDocument)
    await checkpointer.save(BytesDocument({"a": 1, "t": {"1": b"\xff" * 40}}), "t", "1")
    await checkpointer.save(BytesDocument({"a": 2, "t": {"1": b"\xff" * 40}}), "t", "2")
    framed, plain = await checkpointer.storage.retrieve_chain("t")
    assert (framed.payload[0], plain.payload[0]) == (FRAMED_VERSION, FORMAT_VERSION)
    assert framed.verified(framed.seal()) == framed
    for place in range(len(framed.payload)):
        flipped = bytearray(framed.payload)
        flipped[place] ^= 1
        with pytest.raises(CheckpointCorruptError):
            replace(framed, payload=bytes(flipped)).unpack()


async def test_bytes_in_other_states_are_refused():
    for state in ({"t": {"1": b"x"}}, {"a": b"x"}):
        with pytest.raises(TypeError, match="bytes"):
            await DeltaCheckpointer().save(state, "t")


_DEEP = b"[" * 1_000 + b'"m"' + b"]" * 1_000


@pytest.mark.parametrize(
    "document",
    [
        *(b"5", b"[]", b'["m",["x"],["m"]]', b'["m",[],["m"]]', b'["m",[3],5]', b'["m",[3],"m"]'),
        *(b'["m",[-3,6],["m","m"]]', b'["m",5,["m"]]', b'["m",[99],["m"]]', b'["m",[2],["m"]]'),
        b'["m",[3],%b]' % _DEEP,
        *(b'["m",[3],["m","m"]]', b'["m",[1,2],["m","x","m","m"]]', b'["m",[3],{"m":1}]'),
    ],
)
def test_what_is_no_frame_is_a_value_error(document):
    """Whoever writes to the database can write a checksum that fits."""
    with pytest.raises(ValueError):  # noqa: PT011 - the words are those of the reader
        loads(b"\0" + len(document).to_bytes(4, "big") + document + b"abc")
