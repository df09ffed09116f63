"""No stored value of LangGraph's stops the process that reads it."""

import time

import ormsgpack
import pytest

pytest.importorskip("langgraph")

from langgraph.checkpoint.serde import jsonplus

from locus_memory.errors import CheckpointCorruptError
from locus_memory.integrations.langgraph.checkpoints.serializer import StrictSerializer


def _nested(depth):
    value = ormsgpack.packb(1)
    for _ in range(depth):
        value = ormsgpack.packb(ormsgpack.Ext(jsonplus.EXT_CONSTRUCTOR_SINGLE_ARG, value))
    return value


def _array(kind):
    parts = ormsgpack.packb([kind, [1], "C", b"\0" * 8])
    return ormsgpack.packb(ormsgpack.Ext(jsonplus.EXT_NUMPY_ARRAY, parts))


@pytest.mark.parametrize(
    "content",
    [
        _nested(3000),
        b"\x91" * 100_000 + b"\xc0",
        _array("f8," * 200_000),
        _array("(" * 600_000),
        _array(["f8"] * 200_000),
    ],
)
def test_a_hostile_value_is_corrupt_at_once(content):
    started = time.process_time()
    with pytest.raises(CheckpointCorruptError):
        StrictSerializer().loads_typed(("msgpack", content))
    assert time.process_time() - started < 1


def test_an_array_is_read():
    assert StrictSerializer().loads_typed(("msgpack", _array("<f8"))).tolist() == [0.0]
