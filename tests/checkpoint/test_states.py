from __future__ import annotations

import math
import zlib
from dataclasses import dataclass, replace
from typing import Any

import orjson
import pytest
from pydantic import BaseModel, Field

from locus_memory import AgentState, MemoryCheckpointer, Message, get_checkpointer, open_backend
from locus_memory.backends.inmemory.checkpoints import InMemoryDeltaStorage
from locus_memory.checkpoint.chain import DeltaCheckpointer
from locus_memory.checkpoint.encoding.dictionary import DICTIONARY
from locus_memory.checkpoint.record import Record
from locus_memory.checkpoint.states import AgentDocument
from locus_memory.errors import (
    CheckpointCorruptError,
    InvalidArgumentError,
    StateTypeError,
    ValueNotSerializableError,
)


class Plan(AgentState):
    steps: tuple[str, ...] = ()


class Reading(BaseModel):
    value: float = 0.0
    notes: Any = None
    total: int = Field(0, alias="sum")


class Odd:
    def __repr__(self):
        return "Odd()"


@dataclass
class Holder:
    odd: Odd


def as_before(record: Record) -> Any:
    """Read a record as the version did that knew no kinds."""
    body = record.payload[5:]
    assert int.from_bytes(record.payload[1:5], "big") == record.checksum(body, record.size)
    return orjson.loads(zlib.decompressobj(zdict=DICTIONARY).decompress(body))


async def written(state: Any) -> Record:
    async with MemoryCheckpointer() as checkpointer:
        await checkpointer.save(state, "t", "c")
        record = await checkpointer.storage.retrieve("t")
        assert record is not None
        return record


async def loaded(record: Record, **options: Any) -> Any:
    storage = InMemoryDeltaStorage()
    await storage.store(record)
    async with DeltaCheckpointer(storage, **options) as checkpointer:
        return await checkpointer.load("t")


def without_kind(record: Record) -> Record:
    """Return the record as the version wrote it that knew no kinds."""
    return Record.pack(orjson.dumps(record.unpack()[0]), record, 6)


async def test_a_record_without_a_kind_is_what_it_was_or_a_dict():
    state = AgentState(run_id="r").with_message(Message.user("hello"))
    for saved in (state, state.to_checkpoint()):
        assert await loaded(without_kind(await written(saved))) == state
    for saved in ({"channels": {}}, {"messages": [{"role": "robot"}]}, {"messages": 3}):
        assert await loaded(without_kind(await written(saved))) == saved


@pytest.mark.parametrize("state", [AgentState(run_id="r"), {"n": 1}, Plan(run_id="r")], ids=repr)
async def test_a_version_that_knows_no_kinds_reads_the_same_document(state):
    record = await written(state)
    assert as_before(record) == record.unpack()[0] == await loaded(record, state_type=None)


async def test_a_kind_of_a_newer_version_is_not_guessed():
    record = await written({"n": 1})
    for kind in (b"z", b"mm", b"\x00"):
        newer = Record.pack(orjson.dumps({"n": 1}), record, 6, kind=kind)
        with pytest.raises(CheckpointCorruptError, match="a newer version wrote it"):
            await loaded(newer)


async def test_an_altered_kind_is_noticed():
    record = await written({"n": 1})
    assert record.payload.endswith(b"m")
    for payload in (record.payload[:-1] + b"a", record.payload[:-1], record.payload + b"a"):
        with pytest.raises(CheckpointCorruptError, match="checksum"):
            await loaded(replace(record, payload=payload))


async def test_a_subclass_of_the_agents_state():
    plan = Plan(run_id="r", steps=("pack",))
    record = await written(plan)
    assert await loaded(record) == {"run_id": "r", "messages": [], "steps": ["pack"]}
    assert await loaded(record, state_type=Plan) == plan
    assert await loaded(await written(Plan(run_id="r"))) == AgentState(run_id="r")


async def test_the_json_of_an_agents_state_is_one_if_it_fits():
    state = AgentState(run_id="r").with_message(Message.user("hello"))
    record = await written(AgentDocument(state.to_checkpoint()))
    assert await loaded(record) == state
    other = AgentDocument(run_id="r", messages=[{"role": "robot"}])
    assert await loaded(await written(other)) == {"run_id": "r", "messages": [{"role": "robot"}]}


async def test_an_agents_state_that_does_not_fit_is_told():
    record = await written(AgentState(run_id="r"))
    newer = Record.pack(b'{"run_id":"r","field":1}', record, 6, kind=b"a")
    with pytest.raises(StateTypeError, match=r"is not a AgentState; pass state_type=None"):
        await loaded(newer)


async def test_a_model_keeps_its_names_and_loses_nothing():
    reading = Reading(value=1.5, notes=["a"], sum=3)
    record = await written(reading)
    assert await loaded(record) == {"value": 1.5, "notes": ["a"], "sum": 3}
    assert await loaded(record, state_type=Reading) == reading
    for lost in (
        Reading(value=math.nan),
        Reading(notes=[{"x": math.nan}]),
        Reading(notes=math.inf),
    ):
        with pytest.raises(ValueNotSerializableError) as caught:
            await written(lost)
        assert caught.value.path in {"$.value", "$.notes[0].x", "$.notes"}


async def test_what_cannot_be_written_says_what_to_do():
    for state in (Holder(Odd()), Reading(notes=Odd()), Reading(notes=b"\xff")):
        with pytest.raises(StateTypeError, match=r"(?s)Holder|Reading.*give it to_checkpoint"):
            await written(state)


@pytest.mark.parametrize("state_type", [3, "AgentState", list, Odd, Odd(), int], ids=repr)
def test_what_no_state_can_be_made_of_is_no_state_type(state_type):
    with pytest.raises(InvalidArgumentError, match="state_type is None for dicts, or a class"):
        get_checkpointer("memory", state_type=state_type)


async def test_a_class_that_refuses_names_itself():
    async with open_backend("memory", state_type=Reading) as backend:
        await backend.checkpointer.save({"value": "high"}, "t", "c")
        with pytest.raises(StateTypeError, match=r"'c' of thread 't' is not a Reading"):
            await backend.checkpointer.load("t")
