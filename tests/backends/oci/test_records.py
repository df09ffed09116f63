"""The content of a thread's objects, and the changes of a thread; pure."""

from __future__ import annotations

from dataclasses import replace

import pytest

from locus_memory.backends.oci.records import (
    Index,
    State,
    decode_index,
    decode_state,
    encode_index,
    encode_state,
    payload_of,
)
from locus_memory.backends.record_lists.rows import read_record, removed, row_of, saved
from locus_memory.checkpoint.base import UNSET
from locus_memory.checkpoint.record import Record, RecordHead
from locus_memory.checkpoint.storage import StaleChainError
from locus_memory.errors import CheckpointConflictError, CheckpointCorruptError
from locus_memory.store.encoding import decode_text


def record(name, revision, base=None, thread="t"):
    head = RecordHead(
        thread_id=thread,
        checkpoint_id=name,
        revision=revision,
        base=base,
        level=0,
        sequence=0,
        created_at=1.5,
        metadata={"n": revision},
        size=0,
        stored_size=0,
        forked_from=("from", "there") if revision % 2 else None,
    )
    return Record.pack(b'{"n": %d}' % revision, head, 6)


def grown(*records, state=None, **options):
    state = state or State(thread_id="t", life="life", marks=("a", "b"), garbage=("x",))
    for each in records:
        state = saved(state, each, UNSET, ()).after
    return state


def ids(state):
    return [row_id(row) for row in state.rows]


def row_id(row):
    return decode_text(row.checkpoint_id)


def read(state, packs):
    """Return the records of a state, each with its payload."""
    found = [(row, packs.get(row.place[0] if row.place else "", b"")) for row in state.rows]
    return [read_record("t", row, payload_of(row, pack)) for row, pack in found]


STATE = grown(record("a", 1), record("\x00\x02b", 2, 1), record("c", 3, 2))


def indexed(state, count):
    """Return a state whose first entries are in an index and in a pack."""
    older, pack = [], b""
    for row in state.tail[:count]:
        older.append(row._replace(place=("pack", len(pack)), payload=None))
        pack += row.payload
    return replace(state, tail=state.tail[count:], index=Index("index", tuple(older))), pack


def test_a_state_comes_back():
    found, missing = decode_state("t", encode_state(STATE))
    assert (found, missing) == (STATE, None)
    assert decode_state(None, encode_state(STATE))[0].thread_id == "t"


def test_a_state_with_an_index_and_packs_comes_back():
    state, pack = indexed(STATE, 2)
    found, missing = decode_state("t", encode_state(state))
    assert missing == "index"
    index = decode_index("t", "index", encode_index("t", state.index.rows))
    assert replace(found, index=index) == state
    assert decode_state("t", encode_state(state), None, index)[1] is None
    records = read(state, {"pack": pack})
    assert [each.unpack()[0] for each in records] == [{"n": 1}, {"n": 2}, {"n": 3}]
    assert state.objects() == {"index", "pack", "x"}
    assert state.newest == "c"
    assert row_of(state.rows, "a").revision == 1


def test_an_index_stays_until_one_of_its_rows_goes():
    state, _ = indexed(STATE, 2)
    one, two, three = state.rows
    assert state.rewritten([one, two]) == replace(state, tail=())
    assert state.rewritten([one, two, three]) == state
    for rows in ([one, three], [one, two._replace(place=None), three], []):
        left = state.rewritten(rows)
        assert (left.index, left.rows, left.following) == (None, rows, 4)


def test_damage_anywhere_is_an_error():
    body = encode_state(STATE)
    for place in range(len(body)):
        damaged = body[:place] + bytes([body[place] ^ 4]) + body[place + 1 :]
        with pytest.raises(CheckpointCorruptError, match="thread 't'"):
            decode_state("t", damaged)
        with pytest.raises(CheckpointCorruptError):
            decode_state("t", body[:place])


def test_another_thread_in_its_place_is_an_error():
    with pytest.raises(CheckpointCorruptError, match="another thread"):
        decode_state("u", encode_state(STATE))


def test_a_missing_payload_is_an_error_that_names_the_checkpoint():
    state, pack = indexed(STATE, 2)
    for packs in ({}, {"pack": b""}, {"pack": pack[:10]}):
        with pytest.raises(CheckpointCorruptError, match="'a' of thread 't'"):
            read(state, packs)


def test_a_save_is_checked_against_the_state():
    change = saved(STATE, record("d", 4, 3), "c", ())
    assert (change.result, change.removes) == (4, False)
    with pytest.raises(CheckpointConflictError) as caught:
        saved(STATE, record("d", 4, 3), "a", ())
    assert caught.value.actual == "c"
    with pytest.raises(CheckpointConflictError):
        saved(STATE, record("d", 4), None, ())
    with pytest.raises(StaleChainError):
        saved(STATE, record("d", 4, 99), UNSET, ())


def test_an_id_that_is_saved_again_is_replaced_and_its_deltas_are_not_left_alone():
    with pytest.raises(StaleChainError):
        saved(STATE, record("a", 4), UNSET, ())
    with pytest.raises(StaleChainError):
        saved(STATE, record("c", 4, 3), UNSET, ())
    rebased = record("\x00\x02b", 2)
    change = saved(STATE, record("a", 4), UNSET, [rebased])
    assert ids(change.after) == ["\x00\x02b", "c", "a"]
    assert [row.sequence for row in change.after.rows] == [2, 3, 4]
    assert row_of(change.after.rows, "\x00\x02b").base is None


def test_a_removal_keeps_every_base():
    with pytest.raises(StaleChainError):
        removed(STATE, {1}, ())
    change = removed(STATE, {1, 77}, [record("\x00\x02b", 2)])
    assert change.result == 1
    assert [row.revision for row in change.after.rows] == [2, 3]
    everything = removed(STATE, None, ())
    assert everything.result == 3
    assert not everything.after.rows
    with pytest.raises(StaleChainError):
        removed(STATE, set(), [record("x", 88)])


def test_sequences_never_come_again():
    state = removed(STATE, {3}, ()).after
    assert saved(state, record("d", 4, 2), UNSET, ()).result == 4
