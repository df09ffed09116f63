"""How values are written: everything comes back as LangGraph's serializer brings it."""

from __future__ import annotations

import ast
import copy
import dataclasses
import decimal
import ipaddress
import pathlib
import sys
import uuid
from collections import deque
from datetime import UTC, date, datetime, time, timedelta
from itertools import islice

import ormsgpack
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.serde.types import _DeltaSnapshot

from locus_memory.checkpoint.encoding.frames import dumps, loads
from locus_memory.checkpoint.states import Kind, readable
from locus_memory.errors import CheckpointCorruptError, StateTypeError
from locus_memory.integrations.langgraph.checkpoints.known import encode_channels
from locus_memory.integrations.langgraph.checkpoints.messages import (
    MESSAGES,
    as_validated,
)
from locus_memory.integrations.langgraph.checkpoints.records import closed, numbers_of, opened
from locus_memory.integrations.langgraph.checkpoints.serializer import StrictSerializer
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


def stored_and_read(tree):
    """Return a tree after its way through a document, and that document."""
    stored, numbers = closed({"v": {"x": tree}}, {})
    assert numbers_of(stored) == numbers
    read = loads(dumps(stored))
    assert read == stored
    return opened(read)["v"]["x"], stored


@pytest.mark.slow
@given(VALUES)
def test_any_value_comes_back_as_the_serializer_brings_it(value):
    tree = encode_value(SERDE, value)
    read, stored = stored_and_read(tree)
    assert read == tree
    text = readable(stored, Kind.BYTES)
    assert round_trip(text)[1] == text
    assert opened(text)["v"]["x"] == tree
    decoded = decode_value(SERDE, read)
    expected = through_the_serializer(value)
    assert decoded == expected
    assert repr(decoded) == repr(expected)


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
@given(VALUES)
def test_the_bytes_are_those_of_langgraphs_serializer(value):
    assert SERDE.dumps_typed(value) == JsonPlusSerializer().dumps_typed(value)


@pytest.mark.slow
@pytest.mark.parametrize("serde", [SERDE, JsonPlusSerializer()])
@given(
    st.lists(LEAVES, max_size=30),
    st.lists(LEAVES, max_size=30),
    st.tuples(st.integers(0, 30), st.booleans(), st.booleans()),
)
def test_a_value_is_encoded_alike_with_and_without_what_is_known(serde, old, added, choices):
    cut, moved, is_dict = choices
    new = [*added[:3], *old[cut:], *old[:cut], *added] if moved else old[cut:] + added
    if is_dict:
        old, new = ({f"k{i}": part for i, part in enumerate(each)} for each in (old, new))
    _, typed = encode_channels(serde, {"log": old}, {})
    again, _ = encode_channels(serde, {"log": new}, typed)
    assert again == encode_channels(serde, {"log": new}, {})[0]
    assert repr(decode_value(SERDE, again["log"])) == repr(through_the_serializer(new))


class Salted:
    """A cipher that never writes the same bytes twice."""

    def __init__(self):
        self.salt = 0

    def encrypt(self, plaintext):
        self.salt += 1
        return "salted", self.salt.to_bytes(4) + plaintext[::-1]

    def decrypt(self, _, ciphertext):
        return ciphertext[:3:-1]


@pytest.mark.parametrize("count", [0, 1, 14, 15, 16, 17, 40])
@pytest.mark.parametrize("is_dict", [False, True])
def test_what_was_added_is_encrypted_alone(count, is_dict):
    said = {f"m{number}": HumanMessage(f"said {number}", id=str(number)) for number in range(50)}
    old, new = dict(islice(said.items(), count)), dict(islice(said.items(), count + 2))
    old, new = (old, new) if is_dict else (list(old.values()), list(new.values()))
    cipher = Salted()
    serde = EncryptedSerializer(cipher, StrictSerializer())
    before, typed = encode_channels(serde, {"log": old, "other": ["a"]}, {})
    cipher.salt = 1000
    after, typed = encode_channels(serde, {"log": new, "other": ["a"]}, typed)
    assert cipher.salt == 1002
    assert decode_value(serde, after["log"]) == new
    assert after["other"] == before["other"]
    # What is no longer there is forgotten, and what is the same elsewhere has other bytes.
    again, typed = encode_channels(serde, {"log": ["a", "a"]}, typed)
    assert cipher.salt == 1004
    assert again["log"]["l"][0] != again["log"]["l"][1]
    assert len(typed) == 2


class Exact:
    """A serializer that tells a tuple from a list."""

    def dumps_typed(self, obj):
        return "repr", repr(obj).encode()

    def loads_typed(self, data):
        return ast.literal_eval(data[1].decode())


SHAPES = st.recursive(
    st.sampled_from([0, False, 0.0, -0.0, "", b"", None, "語", 1, True]),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.lists(inner, max_size=2).map(tuple)
        | st.dictionaries(st.sampled_from(["a", "é", 1]), inner, max_size=2)
    ),
    max_leaves=5,
)


@given(st.lists(SHAPES, min_size=2, max_size=4), st.booleans())
@example([{"a": (1, 2)}, {"a": [1, 2]}], False)
def test_another_value_never_has_the_bytes_of_one_before(values, is_list):
    typed = {}
    for value in values:
        channels = {"log": [value] if is_list else value}
        trees, typed = encode_channels(Exact(), channels, typed)
        assert repr(decode_value(Exact(), trees["log"])) == repr(channels["log"])


def test_what_a_conversation_says_is_held_once():
    said = "what somebody says in a conversation, at some length"
    message = HumanMessage(said, id="1")
    trees = {"a": {"messages": [message]}, "b": message, "c": [message, message]}
    trees = {name: encode_value(SERDE, value) for name, value in trees.items()}
    stored, _ = closed({"v": trees}, {})
    assert [said.encode() in data for data in stored["t"].values()] == [True]
    assert opened(stored)["v"] == trees


def test_the_same_bytes_keep_their_number_and_others_get_a_new_one():
    first, second, third = (bytes([number]) * 30 for number in range(3))
    _, numbers = closed({"v": {"x": {"l": [first, second]}}}, {})
    stored, after = closed({"v": {"x": {"l": [second, third]}}}, numbers)
    assert after == {second: numbers[second], third: 3}
    assert stored == {"v": {"x": {"l": [2, 3]}}, "t": {"2": second, "3": third}}


@pytest.mark.parametrize("part", [7, "€", ["a"], {"x": []}, {"l": 1}, {"d": ["a"]}, {}, 1.5, True])
def test_a_damaged_value_is_reported(part):
    with pytest.raises(CheckpointCorruptError, match="unknown form"):
        opened({"v": {"x": part}, "t": {}})


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
        decode_value(SERDE, [kind, data])
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


FIELDS = st.fixed_dictionaries(
    {},
    optional={
        "content": WORDS | st.lists(st.just({"type": "text", "text": "a"}), max_size=2) | st.none(),
        "additional_kwargs": st.sampled_from([{}, {"refusal": None}, {"tool_calls": []}, None]),
        "response_metadata": st.sampled_from([{}, {"model": "m", 3: 4}, None]),
        "name": st.none() | WORDS | st.integers(0, 3),
        "id": st.none() | WORDS | st.integers(0, 3),
        "type": st.sampled_from(["human", "ai", "tool", "system", "other", None]),
        "example": st.booleans(),
        "tool_calls": st.lists(
            st.sampled_from(
                [
                    {"name": "a", "args": {"x": [1]}, "id": "1", "type": "tool_call"},
                    {"name": "a", "args": {}, "id": None, "type": "tool_call"},
                    {"name": "a", "args": {}, "id": "1"},
                    {"args": {}, "name": "a", "id": "1", "type": "tool_call"},
                    {"name": "a", "args": {1: 2}, "id": "1", "type": "tool_call"},
                    {"name": "a", "args": {}, "id": 5, "type": "tool_call"},
                    {"name": "a", "args": {}, "id": "1", "type": "other"},
                    {"name": "a", "args": {}, "id": "1", "type": "tool_call", "more": 1},
                    "call",
                ]
            ),
            max_size=2,
        ),
        "invalid_tool_calls": st.sampled_from([[], [{"name": "a", "args": "", "id": "1"}]]),
        "usage_metadata": st.sampled_from(
            [
                None,
                {},
                {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3},
                {"input_tokens": 1, "output_tokens": 2.0, "total_tokens": True},
                {"output_tokens": 1, "input_tokens": 2, "total_tokens": 3},
                {"input_tokens": 1},
            ]
        ),
        "tool_call_id": WORDS | st.uuids() | st.none(),
        "artifact": st.none() | st.just([1]),
        "status": st.sampled_from(["success", "error", "other"]),
        "more": st.integers(0, 3),
    },
)


@pytest.mark.slow
@given(st.sampled_from(sorted(MESSAGES)), FIELDS, st.booleans(), st.randoms())
def test_a_message_is_made_as_validation_makes_it(name, changed, is_shuffled, chance):
    kind = MESSAGES[name]
    own = {"tool_call_id": "1"} if kind is ToolMessage else {}
    fields = kind("hi", **own).model_dump()
    fields |= changed if chance.random() < 0.5 else {k: changed[k] for k in changed if k in fields}
    if is_shuffled:
        fields = {key: fields[key] for key in chance.sample(list(fields), len(fields))}
    made = as_validated(kind, copy.deepcopy(fields))
    if made is None:
        return
    expected = kind(**copy.deepcopy(fields))
    assert type(made) is type(expected)
    assert repr(made.__dict__) == repr(expected.__dict__)
    for slot in ("__pydantic_fields_set__", "__pydantic_extra__", "__pydantic_private__"):
        assert getattr(made, slot) == getattr(expected, slot)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")
@given(st.sampled_from(sorted(MESSAGES)), FIELDS, st.data())
def test_a_message_is_packed_as_pydantic_dumps_it(name, changed, data):
    kind = MESSAGES[name]
    message = kind("hi", **({"tool_call_id": "1"} if kind is ToolMessage else {}))
    for field, value in changed.items():
        if field in kind.model_fields or data.draw(st.booleans()):
            # Also what validation refuses: a node may put it there.
            setattr(message, field, value)
    for field in ("additional_kwargs", "artifact"):
        if hasattr(message, field) and data.draw(st.booleans()):
            setattr(message, field, {"a": data.draw(VALUES)})
    assert SERDE.dumps_typed(message) == JsonPlusSerializer().dumps_typed(message)


@pytest.mark.parametrize("kind", MESSAGES.values())
def test_usual_messages_need_no_validation(kind):
    own = {"tool_call_id": "1"} if kind is ToolMessage else {}
    if kind is AIMessage:
        own["tool_calls"] = [{"name": "a", "args": {"x": 1}, "id": "1"}]
        own["usage_metadata"] = {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}
    message = kind("hi", id="1", response_metadata={"model": "m"}, **own)
    assert as_validated(kind, message.model_dump()) == message


def outcome(serde, trees):
    try:
        return [decode_value(serde, tree) for tree in trees]
    except (CheckpointCorruptError, StateTypeError) as error:
        return type(error)


@pytest.mark.slow
@given(
    st.builds(AIMessage, WORDS, additional_kwargs=st.dictionaries(WORDS, LEAVES, max_size=2)),
    st.integers(0, 40),
    st.binary(max_size=3),
)
def test_damaged_bytes_of_a_message_raise_errors_of_the_library(message, place, damage):
    content = SERDE.dumps_typed(message)[1]
    outcome(SERDE, [content[:place] + damage + content[place + 1 :]])


@given(st.lists(st.one_of(VALUES, st.builds(HumanMessage, WORDS, id=WORDS), st.binary())))
def test_a_list_is_read_as_its_elements_are(elements):
    tree = encode_value(SERDE, elements)
    assert decode_value(SERDE, tree) == outcome(SERDE, tree["l"])


@pytest.mark.parametrize("count", [0, 1, 15, 16, 70_000])
def test_a_list_and_a_dict_of_any_length_are_read(count):
    message = HumanMessage("hi", id="1")
    for value in ([None] * count, {"m": message, **dict.fromkeys(map(str, range(count)))}):
        assert decode_value(SERDE, encode_value(SERDE, value)) == value


def test_values_of_every_depth_that_is_saved_are_read_in_a_list():
    deepest = 1
    for _ in range(254):
        deepest = [deepest]
    value = {"m": [HumanMessage("hi", id="1"), deepest]}
    assert decode_value(SERDE, encode_value(SERDE, value)) == value
