"""How values are written: everything comes back as LangGraph's serializer brings it."""

from __future__ import annotations

import dataclasses
import decimal
import ipaddress
import pathlib
import sys
import uuid
from collections import deque
from datetime import UTC, date, datetime, time, timedelta

import ormsgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.serde.types import _DeltaSnapshot

from locus_memory.errors import CheckpointCorruptError, StateTypeError
from locus_memory.integrations.langgraph.checkpoints.known import Known, encode_channels
from locus_memory.integrations.langgraph.checkpoints.serializer import StrictSerializer
from locus_memory.integrations.langgraph.checkpoints.texts import Pool, bytes_of, text_of, unfold
from locus_memory.integrations.langgraph.checkpoints.values import decode_value, encode_value
from locus_memory.store.json_values import round_trip

SERDE = StrictSerializer()
WORDS = st.text(
    st.sampled_from("abc XYZ\n\té€語🎉\ue000\ue1ff\U000f0000\U000f0001\x00\x7f\xff"), max_size=200
)
LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**64 - 1),
    st.floats(allow_nan=False),
    WORDS,
    st.text(max_size=60),
    st.binary(max_size=200),
    st.datetimes(timezones=st.just(UTC)),
    st.dates(),
    st.timedeltas(),
    st.uuids(),
    st.decimals(allow_nan=False),
    st.ip_addresses(),
    st.sampled_from([pathlib.Path("a") / "b", time(1, 2, 3), deque([1, 2])]),
    st.builds(HumanMessage, WORDS, id=st.none() | st.uuids().map(str)),
    st.builds(AIMessage, WORDS, id=st.none() | st.uuids().map(str)),
    st.builds(SystemMessage, WORDS),
    st.builds(ToolMessage, WORDS, tool_call_id=st.text(max_size=9)),
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=5),
        st.dictionaries(st.text(max_size=9) | st.integers(-9, 9), inner, max_size=4),
        st.tuples(inner, inner),
        st.frozensets(st.integers(0, 9) | st.text(max_size=3), max_size=4),
    ),
    max_leaves=12,
)


def through_the_serializer(value):
    return SERDE.loads_typed(SERDE.dumps_typed(value))


@given(st.binary(max_size=400) | WORDS.map(str.encode))
def test_any_bytes_come_back(data):
    pool = Pool()
    folded = pool.fold(text_of(data))
    assert bytes_of(text_of(data)) == data
    assert bytes_of(folded, pool.texts) == data
    assert unfold(folded, pool.texts) == text_of(data)
    assert round_trip(folded)[1] == folded


@pytest.mark.slow
@given(VALUES)
def test_any_value_comes_back_as_the_serializer_brings_it(value):
    pool = Pool()
    encoded = encode_value(SERDE, value, pool)
    assert round_trip(encoded)[1] == encoded
    decoded = decode_value(SERDE, encoded, pool.texts)
    expected = through_the_serializer(value)
    assert decoded == expected
    assert repr(decoded) == repr(expected)
    assert decode_value(SERDE, encode_value(SERDE, value)) == expected


def test_what_json_has_no_word_for():
    value = {
        "tuple": (1, 2), "set": {1}, "bytes": b"\x00\xff", 7: "seven", "late": date(2026, 1, 2),
        "ip": ipaddress.ip_address("::1"), "money": decimal.Decimal("1.10"),
        "gone": timedelta(days=1), "id": uuid.UUID(int=5), "large": 2**64 - 1,
        "order": {"b": 1, "a": 2}, "when": datetime(2026, 1, 2, tzinfo=UTC),
    }  # fmt: skip
    decoded = decode_value(SERDE, encode_value(SERDE, value))
    assert decoded == through_the_serializer(value)
    assert list(decoded["order"]) == ["b", "a"]
    nan = decode_value(SERDE, encode_value(SERDE, [float("nan"), float("inf")]))
    assert repr(nan) == "[nan, inf]"


@pytest.mark.slow
@given(VALUES)
def test_a_snapshot_of_a_delta_channel_stays_one(value):
    decoded = decode_value(SERDE, encode_value(SERDE, _DeltaSnapshot(value)))
    assert type(decoded) is _DeltaSnapshot
    assert decoded.value == through_the_serializer(value)


@pytest.mark.slow
@given(
    st.lists(LEAVES, max_size=30),
    st.lists(LEAVES, max_size=30),
    st.integers(0, 30),
    st.booleans(),
)
def test_a_list_is_encoded_alike_with_and_without_what_is_known(old, added, cut, pooled):
    """Elements are recognised wherever they have moved."""
    pool = Pool()
    values, prints = encode_channels(SERDE, {"log": old}, None, pool)
    known = Known("1", "1", values=values, pool=pool, prints=prints)
    new = [*added[:3], *old[cut:], *old[:cut], *added] if pooled else old[cut:] + added
    again, _ = encode_channels(SERDE, {"log": new}, known, pool)
    assert again == encode_channels(SERDE, {"log": new}, None, pool)[0]
    expected = [through_the_serializer(element) for element in new]
    assert repr(decode_value(SERDE, again["log"], pool.texts)) == repr(expected)


def test_what_a_conversation_says_is_pooled_once():
    said = "what somebody says in a conversation, at some length"
    pool = Pool()
    for value in ({"messages": [HumanMessage(said)]}, HumanMessage(said), [said, said]):
        encode_value(SERDE, value, pool)
    assert [said in text for text in pool.texts] == [True]


def test_a_pool_that_is_mostly_out_of_use_is_stale():
    pool = Pool()
    folded = [pool.fold(f"{number} " + "text " * 20) for number in range(32)]
    assert not pool.is_stale(folded)
    folded += [pool.fold(f"more {number} " + "text " * 20) for number in range(16)]
    assert pool.is_stale(folded[-8:])


@pytest.mark.parametrize("text", ["\ue0ff", "\U000f0005"])
def test_a_private_character_without_a_meaning_is_reported(text):
    with pytest.raises(CheckpointCorruptError, match="newer version"):
        bytes_of(text, ["only one"])


class Reversed:
    """A cipher that can be seen through, but not by accident."""

    def encrypt(self, plaintext):
        return "reversed", plaintext[::-1]

    def decrypt(self, ciphername, ciphertext):
        assert ciphername == "reversed"
        return ciphertext[::-1]


def test_an_encrypting_serializer_is_used_for_each_element():
    serde = EncryptedSerializer(Reversed(), JsonPlusSerializer())
    value = [HumanMessage("secret"), None, b"bytes"]
    encoded = encode_value(serde, value)
    assert [element[0] for element in encoded["l"]] == [
        "msgpack+reversed", "null+reversed", "bytes+reversed",
    ]  # fmt: skip
    assert "secret" not in str(encoded)
    assert decode_value(serde, encoded) == value


@dataclasses.dataclass
class Own:
    """A class of the user's, on no list."""

    word: str


def forged(code, *parts):
    return ormsgpack.packb(ormsgpack.Ext(code, ormsgpack.packb(parts)))


@pytest.mark.parametrize(
    "payload",
    [
        ("msgpack", forged(0, "canary", "Canary", "x")),
        ("msgpack", forged(1, "canary", "Canary", ["x"])),
        ("msgpack", forged(2, "canary", "Canary", {"word": "x"})),
        ("msgpack", forged(3, "canary", "Canary", "x", "method")),
        ("msgpack", forged(4, "canary", "Canary", {"word": "x"})),
        ("msgpack", forged(5, "canary", "Canary", {"word": "x"}, "model_validate_json")),
        ("json", b'{"lc": 2, "type": "constructor", "id": ["canary", "Canary"]}'),
        ("json", b'{"lc": 1, "type": "constructor", "id": ["canary", "Canary"], "kwargs": {}}'),
        ("pickle", b"ccanary\nCanary\n."),
    ],
)
def test_a_forged_payload_imports_nothing(payload, tmp_path, monkeypatch):
    kind, data = payload
    (tmp_path / "canary.py").write_text("class Canary:\n    def __init__(self, *a, **k): 1 / 0\n")
    monkeypatch.syspath_prepend(tmp_path)
    error = StateTypeError if kind == "msgpack" else NotImplementedError
    with pytest.raises(error, match="canary" if kind == "msgpack" else kind):
        decode_value(SERDE, [kind, text_of(data)])
    assert "canary" not in sys.modules


def test_a_class_of_the_users_needs_to_be_allowed():
    encoded = encode_value(SERDE, Own("hello"))
    with pytest.raises(StateTypeError, match=r"test_values\.Own .*with_allowlist\(\[\('"):
        decode_value(SERDE, encoded)
    allowing = SERDE.with_msgpack_allowlist([Own])
    assert decode_value(allowing, encoded) == Own("hello")
    assert isinstance(allowing, StrictSerializer)


async def test_a_bytearray_comes_back_as_one(saver):
    config = {"configurable": {"thread_id": "ada", "checkpoint_ns": ""}}
    checkpoint = {**empty_checkpoint(), "channel_values": {"raw": bytearray(b"\xff01")}}
    stored = await saver.aput(config, checkpoint, {}, {})
    await saver.aput_writes(stored, [("raw", bytearray(b"more"))], "task")
    found = await saver.aget_tuple(stored)
    assert type(found.checkpoint["channel_values"]["raw"]) is bytearray
    assert found.checkpoint["channel_values"] == checkpoint["channel_values"]
    assert found.pending_writes == [("task", "raw", bytearray(b"more"))]
