from __future__ import annotations

import zlib
from dataclasses import replace
from itertools import islice, pairwise

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from locus_memory.backends.inmemory.checkpoints import MemoryCheckpointer
from locus_memory.checkpoint.delta import diff
from locus_memory.checkpoint.encoding.chain_cache import CachedChain, ChainCache, Link
from locus_memory.checkpoint.encoding.encode import draft, growth
from locus_memory.checkpoint.encoding.frames import size_of
from locus_memory.checkpoint.encoding.levels import place
from locus_memory.checkpoint.record import FORMAT_VERSION, Record, RecordHead, moved
from locus_memory.checkpoint.retention import expendable
from locus_memory.errors import CheckpointCorruptError, InvalidArgumentError
from locus_memory.registry import open_backend
from locus_memory.testing import FakeClock


@pytest.mark.slow
@settings(deadline=None, max_examples=60)
@given(st.integers(2, 9), st.integers(1, 700))
def test_chains_grow_with_the_logarithm(radix, count):
    levels: list[int] = []
    for number in range(1, count + 1):
        kept, level = place(levels, radix)
        levels = [*levels[:kept], level]
        digits, rest = 0, number
        while rest:
            digits, rest = digits + rest % radix, rest // radix
        assert len(levels) == digits
        assert all(before >= after for before, after in pairwise(levels))


def head(revision: int, created_at: float = 0.0, **changes: object) -> RecordHead:
    plain = RecordHead(
        thread_id="t",
        checkpoint_id=f"c{revision}",
        revision=revision,
        base=None,
        level=0,
        sequence=revision,
        created_at=created_at,
        metadata={},
        size=0,
        stored_size=0,
    )
    return replace(plain, **changes)


def test_what_a_thread_can_do_without():
    heads = [head(number, float(number)) for number in range(9, 0, -1)]
    assert expendable(heads, keep_last=3, before=None) == {1, 2, 3, 4, 5, 6}
    assert expendable(heads, keep_last=None, before=4.0) == {1, 2, 3}
    assert expendable(heads, keep_last=8, before=4.0) == {1}
    assert expendable(heads, keep_last=None, before=100.0) == set(range(1, 9))
    assert expendable([], keep_last=1, before=None) == set()
    with pytest.raises(InvalidArgumentError):
        expendable(heads, keep_last=None, before=None)


def test_any_flipped_bit_is_noticed():
    record = Record.pack(b'{"a":"some text"}', head(1, metadata={"k": 1}), 6)
    assert record.unpack()[0] == {"a": "some text"}
    assert record.payload[0] == FORMAT_VERSION
    for place_ in range(len(record.payload)):
        for bit in range(8):
            flipped = bytearray(record.payload)
            flipped[place_] ^= 1 << bit
            with pytest.raises(CheckpointCorruptError, match="'c1' of thread 't'"):
                replace(record, payload=bytes(flipped)).unpack()


def test_any_cut_is_noticed():
    record = Record.pack(b'{"a":"some text"}', head(1), 6)
    for length in range(len(record.payload)):
        with pytest.raises(CheckpointCorruptError):
            replace(record, payload=record.payload[:length]).unpack()


@pytest.mark.parametrize(
    "change",
    [
        {"checkpoint_id": "c2"},
        {"checkpoint_id": b"c1"},
        {"checkpoint_id": None},
        {"revision": 2},
        {"revision": "1"},
        {"base": 3},
        {"base": 1e300},
        {"level": 1},
        {"level": b""},
        {"created_at": 1.5},
        {"created_at": "0.0"},
        {"created_at": None},
        {"created_at": 10**400},
        {"metadata": {"k": 2}},
        {"metadata": {1: 1}},
        {"metadata": []},
        {"size": 3},
        {"size": 2**80},
        {"size": -1},
    ],
)
def test_a_head_that_was_altered_is_noticed(change):
    record = Record.pack(b"{}", head(1, metadata={"k": 1}), 6)
    assert record.verified(record.seal()) is record
    with pytest.raises(CheckpointCorruptError, match="of thread 't': its head is damaged"):
        replace(record, **change).verified(record.seal())


@pytest.mark.parametrize("seal", [None, "1", b"1", 0, 1.5])
def test_a_seal_that_is_none_is_noticed(seal):
    with pytest.raises(CheckpointCorruptError):
        head(1).verified(seal)


def test_a_seal_goes_along_with_a_copy():
    record = Record.pack(b"{}", head(1, 7), 6)
    copy = replace(record, thread_id="copy", sequence=9, created_at=7.0, stored_size=5)
    with pytest.raises(CheckpointCorruptError):
        copy.verified(record.seal())
    assert copy.verified(record.seal() ^ moved("t", "copy", None, None)).unpack()[0] == {}


def test_a_fork_point_that_was_altered_is_noticed():
    record = replace(Record.pack(b"{}", head(1), 6), forked_from=("main", "c"))
    assert record.verified(record.seal()) is record
    for other in (None, ("main", "d"), ("c", "main"), ("mainc", ""), "mainc", 7):
        with pytest.raises(CheckpointCorruptError):
            replace(record, forked_from=other).verified(record.seal())


def test_a_record_that_is_not_json_is_noticed():
    body = zlib.compress(b"not json")
    record = Record.pack(b"{}", head(1), 6)
    whole = record.checksum(body, record.size).to_bytes(4, "big") + body
    with pytest.raises(CheckpointCorruptError, match="invalid literal"):
        replace(record, payload=bytes((FORMAT_VERSION,)) + whole).unpack()


def test_a_draft_does_not_depend_on_a_state_that_changes_later():
    state = {"messages": [{"content": "one"}]}
    first = draft(state, CachedChain(), checkpoint_id="1", revision=1, max_chain_depth=9)
    state["messages"][0]["content"] = "changed"
    assert first.cached.links[-1].document == {"messages": [{"content": "one"}]}


LEAVES = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63)
    | st.text(max_size=9)
    | st.binary(max_size=9)
)
STATES = st.dictionaries(
    st.text(max_size=5),
    st.recursive(
        LEAVES | st.text(min_size=40, max_size=90),
        lambda inner: st.lists(inner, max_size=6) | st.dictionaries(st.text(max_size=5), inner),
        max_leaves=20,
    ),
    max_size=5,
)


@given(STATES, st.lists(st.tuples(STATES, st.integers(0, 6)), min_size=1, max_size=3))
def test_the_growth_of_a_state_is_known_from_the_delta(state, changes):
    for change, kept in changes:
        new = {**dict(islice(state.items(), kept)), **change}
        for key in new.keys() & state.keys():
            if isinstance(new[key], list) and isinstance(state[key], list):
                new[key] = [*state[key][:kept], *new[key], *state[key][kept:]]
        delta = diff(state, new)
        exact = size_of(new) - size_of(state)
        assert exact - 3 * size_of(delta) <= growth(state, delta) <= exact + 3
        state = new


@pytest.mark.parametrize(
    ("old", "delta", "grown"),
    [
        ({"a": 1}, None, 0),
        ({"a": 1}, ["d", {"a": ["=", 22]}], 1),
        ({"a": "x" * 999}, ["d", {"a": ["=", ""]}], -999),
        ({"a": 1, "b": 2}, ["d", {}, ["a"]], -7),
        ([1, 2], ["l", [2, [33]]], 2),
        ([11, 2], ["l", [-1, 1]], -4),
        ([11, 22], ["l", [1]], -4),
        ([{"a": "b" * 9}, 2], ["l", [{"~": ["d", {"a": ["=", ""]}]}, 1]], -9),
        ("x" * 999, ["s", 0, 900, ""], -900),
        ("x" * 999, ["s", 999, 0, "y"], 1),
    ],
)
def test_how_much_a_delta_adds(old, delta, grown):
    assert growth(old, delta) == grown


def test_the_cache_is_bounded_by_bytes():
    cache = ChainCache(100_000)
    for number in range(50):
        cached = CachedChain((Link(number, "c", 0, 1, {}, plain=True),), 10_000)
        cache.put(f"t{number}", cached)
        assert len(cache._chains) <= 5
    assert cache.get("t49") is not None
    assert cache.get("t0") is None
    cache.put("huge", CachedChain((), 10**6))
    assert cache.get("huge") is None
    cache.discard("unknown")


async def test_what_is_read_back_is_what_was_remembered():
    for messages in ([{"content": "text"}], [{"n": 1}]):
        checkpointer = MemoryCheckpointer(state_type=None)
        for turn in range(70):
            await checkpointer.save({"messages": messages * turn, "turn": turn}, "t")
        remembered = checkpointer._chains.get("t")
        read = CachedChain.of(await checkpointer.storage.retrieve_chain("t"))
        assert [link.revision for link in read.links] == [
            link.revision for link in remembered.links
        ]
        assert read.links[-1].document == remembered.links[-1].document
        assert read.links[-1].plain is remembered.links[-1].plain is ("content" in messages[0])
        kept = [link.document is not None for link in remembered.links]
        assert [link.document is not None for link in read.links] == kept


@pytest.mark.parametrize(("asked", "used"), [(0, 0), (1, 1), (2, 1), (3, 1), (6, 4), (9, 7)])
async def test_a_long_record_is_compressed_at_a_lower_level(asked, used):
    state = {"text": " ".join(str(number**3) for number in range(4000))}
    async with MemoryCheckpointer(state_type=None, compression_level=asked) as checkpointer:
        await checkpointer.save(state, "long")
        await checkpointer.save({"text": state["text"][:8000]}, "short")
        for thread, level in (("long", used), ("short", asked)):
            record = await checkpointer.storage.retrieve(thread)
            document = orjson.dumps(await checkpointer.load(thread))
            assert record.payload == Record.pack(document, record, level, kind=b"m").payload


async def test_a_checkpoint_of_exactly_the_moment_of_a_prune_stays(provider):
    """Also if its moment is shown rounded up: a clock is finer than a microsecond."""
    name, options = provider
    clock = FakeClock()
    async with open_backend(name, clock=clock, **options) as backend:
        for number in range(40):
            await backend.checkpointer.save({"n": number}, "t")
            clock.advance(1.000_000_3)
        infos = await backend.checkpointer.list_with_metadata("t", 100)
        for place in range(30, 0, -4):
            await backend.checkpointer.prune("t", older_than=infos[place].created_at)
            left = await backend.checkpointer.list_checkpoints("t", 100)
            assert left == [each.checkpoint_id for each in infos[: place + 1]]
