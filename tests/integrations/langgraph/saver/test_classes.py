"""Objects of the user's classes: those that a schema names come back, others are an error."""

from __future__ import annotations

import dataclasses
import gc
import subprocess
import sys
from collections.abc import Sequence
from enum import Enum
from typing import Annotated, Any, Generic, NamedTuple, NewType, Optional, TypeVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.agents import AgentAction
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.func import entrypoint, task
from langgraph.graph import START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Command, Send, interrupt
from pydantic import BaseModel, ConfigDict, SecretStr
from pydantic.alias_generators import to_camel
from typing_extensions import TypeAliasType, TypedDict

from locus_memory import open_backend
from locus_memory.errors import StateTypeError
from locus_memory.integrations.langgraph import LocusSaver
from locus_memory.integrations.langgraph.checkpoints.schemas import classes_in, living_classes
from locus_memory.integrations.langgraph.checkpoints.serializer import StrictSerializer

ADA = {"configurable": {"thread_id": "ada"}}
T = TypeVar("T")


class Colour(Enum):
    RED = "red"


class Point(NamedTuple):
    x: int
    y: int


class Inner(BaseModel):
    name: str


class Order(BaseModel):
    """Its fields have other names outside, which LangGraph does not store."""

    model_config = ConfigDict(alias_generator=to_camel)
    item_count: int = 0
    inner: Inner | None = None
    token: SecretStr = SecretStr("")


@dataclasses.dataclass(frozen=True)
class Trip:
    stops: list[Point]
    colour: Colour
    length: int = dataclasses.field(init=False, default=0)

    def __post_init__(self):
        object.__setattr__(self, "length", len(self.stops))


class Elsewhere(BaseModel):
    """No schema names it."""

    word: str


class State(TypedDict, total=False):
    order: Order
    trips: Annotated[Sequence[Trip], "of the year"]
    colour: Optional[Colour]  # noqa: UP045 - both spellings are met
    steps: list[tuple[AgentAction, str]]
    anything: Any


STATE = {
    "order": Order(itemCount=3, inner=Inner(name="tea"), token=SecretStr("s3cret")),
    "trips": [Trip([Point(1, 2)], Colour.RED)],
    "colour": Colour.RED,
    "steps": [(AgentAction(tool="search", tool_input="tea", log="..."), "found")],
}


def built(saver, schema=State, node=lambda _: {}):
    return StateGraph(schema).add_node("node", node).add_edge(START, "node").compile(saver)


async def test_what_the_schema_names_comes_back_in_another_process(provider):
    url, options = provider
    async with open_backend(url, **options) as backend:
        await built(LocusSaver(backend)).ainvoke(STATE, ADA)
        state = await built(LocusSaver(backend)).aget_state(ADA)
        history = [each.values async for each in built(LocusSaver(backend)).aget_state_history(ADA)]
    expected = {**STATE, "steps": [[*STATE["steps"][0]]]}
    assert state.values == expected
    assert history[0] == expected
    assert state.values["order"].token.get_secret_value() == "s3cret"
    assert type(state.values["order"].inner) is Inner
    assert state.values["trips"][0].length == 1


def test_the_blocking_face_brings_them_back_as_well(where):
    with LocusSaver(where) as saver:
        built(saver).invoke(STATE, ADA)
        assert built(saver).get_state(ADA).values["order"] == STATE["order"]
        assert next(built(saver).get_state_history(ADA)).values["colour"] is Colour.RED


async def test_a_class_of_a_function_comes_back_as_the_one_of_the_graph_that_asks(saver):
    def made():
        class Local(BaseModel):
            word: str

        return built(saver, TypedDict("Schema", {"local": Local})), Local

    (first, kind), (second, other) = made(), made()
    await first.ainvoke({"local": kind(word="a")}, ADA)
    assert type((await first.aget_state(ADA)).values["local"]) is kind
    assert type((await second.aget_state(ADA)).values["local"]) is other


@pytest.mark.slow
async def test_who_asks_the_saver_itself_gets_what_any_graph_names(saver):
    graph = built(saver)
    await graph.ainvoke(STATE, ADA)
    found = await saver.aget_tuple(ADA)
    assert found.checkpoint["channel_values"]["order"] == STATE["order"]
    listed = [each async for each in saver.alist(ADA, limit=1)]
    assert listed[0].checkpoint["channel_values"]["trips"] == STATE["trips"]
    del graph
    gc.collect()


class Alike(type):
    """Its classes are equal to every other, and have no hash."""

    __hash__ = None

    def __eq__(cls, other):
        return True


class Odd(metaclass=Alike):
    pass


@pytest.mark.slow
async def test_a_graph_of_a_subclass_is_found_beside_odd_classes(saver):
    class Local(BaseModel):
        word: str

    class Named(CompiledStateGraph):
        pass

    odd = Odd()
    odd.itself = odd
    assert any(each is odd for each in gc.get_objects())
    graph = built(saver, TypedDict("Schema", {"local": Local}))
    graph.__class__ = Named
    await graph.ainvoke({"local": Local(word="a")}, ADA)
    assert living_classes()()[Local.__module__, "Local"] is Local
    found = await saver.aget_tuple(ADA)
    assert found.checkpoint["channel_values"]["local"] == Local(word="a")
    del graph
    gc.collect()


@pytest.mark.parametrize("value", [Elsewhere(word="x"), [1, {"deep": Elsewhere(word="x")}]])
async def test_a_class_that_nothing_names_is_an_error_and_never_a_dict(saver, value):
    graph = built(saver)
    await graph.ainvoke({"anything": value}, ADA)
    remedy = r"with_allowlist\(\[\('.*test_classes', 'Elsewhere'\)\]\)"
    with pytest.raises(StateTypeError, match=remedy):
        await graph.aget_state(ADA)
    with pytest.raises(StateTypeError, match=r"test_classes\.Elsewhere is not built"):
        await graph.ainvoke({}, ADA)
    allowing = built(saver.with_allowlist([Elsewhere]))
    assert (await allowing.aget_state(ADA)).values["anything"] == value
    named = built(saver.with_allowlist([(Elsewhere.__module__, "Elsewhere")]))
    assert (await named.aget_state(ADA)).values["anything"] == value
    plain = LocusSaver(saver._owned, serde=JsonPlusSerializer(allowed_msgpack_modules=None))
    assert "x" in str((await built(plain).aget_state(ADA)).values["anything"])


async def test_an_allowed_name_that_leads_nowhere_is_an_error(saver):
    class Local(BaseModel):
        word: str

    graph = built(saver.with_allowlist([(Local.__module__, "Local")]))
    await graph.ainvoke({"anything": Local(word="x")}, ADA)
    with pytest.raises(StateTypeError, match=r"allowed but not found: pass the class itself"):
        await graph.aget_state(ADA)
    graph = built(saver.with_allowlist([Local]))
    assert (await graph.aget_state(ADA)).values["anything"] == Local(word="x")


async def test_a_class_that_refuses_its_fields_is_an_error(saver):
    graph = built(saver)
    await graph.ainvoke({"colour": Colour.RED}, ADA)

    class Changed(Enum):
        BLUE = "blue"

    Changed.__name__, Changed.__module__ = "Colour", Colour.__module__

    changed = built(saver, TypedDict("Schema", {"colour": Changed}))
    with pytest.raises(StateTypeError, match=r"Colour cannot be built: .*ValueError"):
        await changed.aget_state(ADA)


async def test_a_result_of_a_task_is_of_its_class_after_an_interrupt(saver):
    calls = []

    @task
    async def prepared(order: Order) -> Order:
        calls.append(order)
        return order.model_copy(update={"item_count": order.item_count + 1})

    @entrypoint(checkpointer=saver)
    async def graph(order: Order) -> Order:
        done = await prepared(order)
        assert type(done) is Order
        return done.model_copy(update={"inner": Inner(name=interrupt("name?"))})

    await graph.ainvoke(Order(itemCount=1), ADA)
    answer = await graph.ainvoke(Command(resume="tea"), ADA)
    assert answer == Order(itemCount=2, inner=Inner(name="tea"))
    assert len(calls) == 1


async def test_what_a_node_asks_for_is_of_its_class_after_an_interrupt(saver):
    seen = []

    def worker(trip: Trip):
        seen.append(trip)
        return {"anything": interrupt("go on?")}

    builder = StateGraph(State).add_node("worker", worker, input_schema=Trip)
    builder.add_conditional_edges(START, lambda _: [Send("worker", STATE["trips"][0])])
    graph = builder.compile(saver)
    await graph.ainvoke({"colour": None}, ADA)
    assert (await graph.ainvoke(Command(resume="yes"), ADA))["anything"] == "yes"
    assert seen == [STATE["trips"][0]] * 2


async def test_arrays_come_back_or_are_an_error(saver):
    """LangGraph's own serializer reads an array of objects as `None`."""
    graph = built(saver)
    arrays = [np.arange(6).reshape(2, 3), np.asfortranarray(np.ones((2, 3)))[:, ::2]]
    await graph.ainvoke({"anything": arrays}, ADA)
    found = (await graph.aget_state(ADA)).values["anything"]
    assert [each.tolist() for each in found] == [each.tolist() for each in arrays]
    assert [each.dtype for each in found] == [each.dtype for each in arrays]
    with pytest.raises(StateTypeError, match=r"cannot be saved: .*array of numpy's"):
        await graph.ainvoke({"anything": np.array([{}, None])}, ADA)


class Pair(NamedTuple):
    left: object
    right: object


@dataclasses.dataclass(frozen=True)
class Held:
    what: object


MEMBERS = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=3) | st.binary(max_size=2),
    lambda inner: st.one_of(
        st.tuples(inner, inner),
        st.frozensets(inner, max_size=3),
        st.builds(Pair, inner, inner),
        st.builds(Held, inner),
    ),
    max_leaves=6,
)


@given(st.sets(MEMBERS, max_size=4) | st.frozensets(MEMBERS, max_size=4))
def test_a_set_comes_back_or_is_refused(value):
    serde = StrictSerializer().with_msgpack_allowlist([Pair, Held])
    try:
        typed = serde.dumps_typed(value)
    except StateTypeError as error:
        # A field of a class is a list when it is read, and then the object is in no set.
        assert "Held" in repr(value) or "Pair" in repr(value)
        assert "cannot be saved" in str(error)  # noqa: PT017
    else:
        found = serde.loads_typed(typed)
        assert type(found) is type(value)
        assert found == value


def test_a_set_with_a_member_of_an_unknown_class_is_saved():
    class Local(NamedTuple):
        left: int

    kind, content = StrictSerializer().dumps_typed({Local(1)})
    with pytest.raises(StateTypeError, match="neither the schema"):
        StrictSerializer().loads_typed((kind, content))


class Upside:
    """A cipher that can be seen through."""

    def encrypt(self, plaintext):
        return "upside", plaintext[::-1]

    def decrypt(self, ciphername, ciphertext):
        return ciphertext[::-1]


async def test_an_encrypting_serializer_knows_the_schema_as_well(where):
    async with LocusSaver(where, serde=EncryptedSerializer(Upside(), StrictSerializer())) as saver:
        graph = built(saver)
        await graph.ainvoke(STATE, ADA)
        assert (await graph.aget_state(ADA)).values["order"] == STATE["order"]
        await graph.ainvoke({"anything": Elsewhere(word="x")}, ADA)
        with pytest.raises(StateTypeError, match="Elsewhere"):
            await graph.aget_state(ADA)


class Box(BaseModel, Generic[T]):
    content: T


Labels = TypeAliasType("Labels", dict[str, Colour])


@dataclasses.dataclass
class Node:
    child: Node | None
    missing: NoSuchName  # noqa: F821 - as it is under TYPE_CHECKING


@pytest.mark.parametrize(
    ("annotation", "expected"),
    [
        (Order, {"Order", "Inner", "SecretStr"}),
        (dict[str, list[Trip | None]], {"Trip", "Point", "Colour"}),
        (Box[Point], {"Box[Point]", "Point"}),
        (NewType("Named", Inner), {"Inner"}),
        (Labels, {"Colour"}),
        (Node, {"Node"}),
        (State, {"Order", "Inner", "SecretStr", "Trip", "Point", "Colour", "AgentAction"}),
        # Whatever derives from these would be meant, or it is no plain data.
        (BaseModel | Enum | Any | object | type[int] | dict | list[str], set()),
        (None, set()),
        ("Order", set()),
    ],
)
def test_the_classes_that_an_annotation_names(annotation, expected):
    assert {name for _, name in classes_in([annotation])} == expected


def test_a_name_of_two_classes_stands_for_neither():
    class Inner(BaseModel):
        other: int

    Inner.__module__ = Order.__module__
    assert {name for _, name in classes_in([Order, Inner])} == {"Order", "SecretStr"}


async def test_versions_that_are_texts_go_on_as_texts(saver):
    """A thread copied from a saver of LangGraph's, which counts so, can be continued."""
    graph = built(saver)
    config = {"configurable": {"thread_id": "ada", "checkpoint_ns": ""}}
    checkpoint = {
        **empty_checkpoint(),
        "channel_values": {"anything": 1},
        "channel_versions": {"anything": f"{5:032}.0.25", "__start__": f"{2:032}.0.75"},
    }
    await saver.aput(config, checkpoint, {"source": "loop", "step": 1}, {})
    assert (await graph.ainvoke({"anything": 2}, ADA))["anything"] == 2
    versions = (await saver.aget_tuple(ADA)).checkpoint["channel_versions"]
    assert int(versions["anything"].partition(".")[0]) > 5
    assert {type(version) for version in versions.values()} == {str}
    assert saver.get_next_version(None, None) == 1
    assert saver.get_next_version(7, None) == 8
    nines = f"{9:032}.0.5"
    assert nines < saver.get_next_version(nines, None) != saver.get_next_version(nines, None)


def test_a_process_without_a_graph_does_not_load_one():
    """The classes of a graph take longer to load than the saver, and a graph loads them itself."""
    program = """
import sys
from langgraph.checkpoint.base import empty_checkpoint
from locus_memory.integrations.langgraph import LocusSaver

with LocusSaver("memory") as saver:
    config = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
    checkpoint = empty_checkpoint() | {"channel_values": {"said": {1, 2}}}
    saver.put(config, checkpoint, {}, {})
    print(saver.get_tuple(config).checkpoint["channel_values"]["said"])
print([name for name in ("langgraph.pregel", "langgraph.graph") if name in sys.modules])
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.stdout == "{1, 2}\n[]\n", done.stderr
