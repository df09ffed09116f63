from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import date
from typing import Annotated, Literal

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import AfterValidator, BaseModel, Field

from locus_memory import events
from locus_memory.chat.base import ToolSpec
from locus_memory.errors import ConfigurationError
from locus_memory.messages import Message, ToolCall
from locus_memory.tools import Tool, as_tool, as_tools, tool

SPEAKER = ContextVar("SPEAKER", default="nobody")


class Place(BaseModel):
    city: str
    country: str = "AT"


@dataclass
class Point:
    x: int
    y: int


class MuteError(Exception):
    def __str__(self):
        raise RuntimeError


def refuse(value):
    raise MuteError


@tool
async def weather(place: Place, day: date | None = None, unit: Literal["C", "F"] = "C") -> str:
    """Tell the weather.

    At length.

    Args:
        place: Where to look,
            as precisely as you can.
        day (date): Which day.
        unit:
            Of the thermometer.

    Returns:
        nothing: of interest
    """
    return f"{place.city} {day!r} {unit}"


async def run(function, **arguments):
    made = as_tool(function)
    return await made.run(ToolCall(id="c1", name=made.spec.name, arguments=arguments))


class TestSpec:
    def test_comes_from_the_signature_and_the_docstring(self):
        assert weather.spec.name == "weather"
        assert weather.spec.description == "Tell the weather."
        schema = weather.spec.parameters
        assert schema["type"] == "object"
        assert schema["required"] == ["place"]
        assert schema["additionalProperties"] is False
        assert "title" not in schema
        properties = schema["properties"]
        assert set(properties) == {"place", "day", "unit"}
        assert properties["place"]["description"] == "Where to look, as precisely as you can."
        assert properties["day"]["description"] == "Which day."
        assert properties["unit"] == {
            "default": "C",
            "description": "Of the thermometer.",
            "enum": ["C", "F"],
            "type": "string",
        }
        assert schema["$defs"]["Place"]["required"] == ["city"]

    def test_a_field_describes_and_constrains(self):
        def roll(
            sides: Annotated[int, Field(description="How many.", ge=2)] = 6,
            times: int = Field(1, le=3),
        ):
            """Roll.

            Args:
                sides: Not this.
                times: How often.
            """

        properties = as_tool(roll).spec.parameters["properties"]
        assert properties["sides"] == {
            "default": 6,
            "description": "How many.",
            "minimum": 2,
            "type": "integer",
        }
        assert properties["times"] == {
            "default": 1,
            "description": "How often.",
            "maximum": 3,
            "type": "integer",
        }

    def test_no_arguments_and_no_docstring(self):
        def now():
            return "noon"

        spec = as_tool(now).spec
        assert spec.description == ""
        assert spec.parameters == {
            "type": "object",
            "properties": {},
            "additionalProperties": False,
        }

    def test_names_that_a_pydantic_field_could_not_have(self):
        def odd(schema, _private, model_config, copy, json=None, self_=SPEAKER):
            return f"{schema}{_private}{model_config}{copy}"

        assert list(as_tool(odd).spec.parameters["properties"]) == [
            *("schema", "_private", "model_config", "copy", "json", "self_")
        ]

    def test_name_and_description_may_be_given(self):
        @tool(name="sum-up", description="Adds.")
        def add(a: int, b: int):
            """Ignored."""
            return a + b

        assert (add.spec.name, add.spec.description) == ("sum-up", "Adds.")
        assert add(1, 2) == 3
        assert as_tool(add) is add

    def test_partials_methods_and_callable_objects(self):
        class Shop:
            def buy(self, what: str):
                """Buy it."""
                return f"bought {what}"

            async def __call__(self, how: int):
                return how + 1

        def power(base: int, exponent: int):
            return base**exponent

        assert as_tool(Shop().buy).spec.parameters["required"] == ["what"]
        assert as_tool(Shop()).spec.name == "Shop"
        square = tool(name="square")(functools.partial(power, exponent=2))
        assert square.spec.parameters["required"] == ["base"]

    @pytest.mark.parametrize(
        ("function", "why"),
        [
            (lambda x: x, "pass name="),
            ("weather", "a tool is a function, not str"),
            (print, "cannot be given by name"),
        ],
    )
    def test_what_is_no_tool(self, function, why):
        with pytest.raises(ConfigurationError, match=why):
            as_tool(function)

    def test_signatures_a_model_cannot_fill(self):
        def many(*args):
            """Take any."""

        def named(**kwargs):
            """Take any."""

        def placed(x, /):
            """Take one."""

        def unknown(x: Nowhere):  # noqa: F821 - the point
            """Take what nobody defined."""

        def socket(x: asyncio.Event):
            """Take what is no JSON."""

        def hook(x: Callable[[], None]):
            """Take what JSON Schema has no word for."""

        for function in (many, named, placed, unknown, socket, hook):
            with pytest.raises(ConfigurationError, match=function.__name__):
                as_tool(function)

    @pytest.mark.parametrize("given", [7, None, weather, weather.function])
    def test_what_is_no_list_of_tools(self, given):
        with pytest.raises(ConfigurationError, match="a list of functions"):
            as_tools(given)

    def test_two_of_one_name(self):
        assert list(as_tools([weather])) == ["weather"]
        with pytest.raises(ConfigurationError, match="two tools are named 'weather'"):
            as_tools([weather, weather.function])


class TestRun:
    async def test_arguments_become_the_types_of_the_hints(self):
        result = await run(weather, place={"city": "Graz"}, day="2026-05-01")
        assert result.content == f"Graz {date(2026, 5, 1)!r} C"
        assert (result.tool_call_id, result.name, result.error) == ("c1", "weather", None)
        assert result.duration_ms >= 0

    @pytest.mark.parametrize(
        ("arguments", "why"),
        [
            ({}, "place: Field required"),
            ({"place": {}}, "place.city: Field required"),
            ({"place": {"city": "Graz"}, "unit": "K"}, "unit: Input should be 'C' or 'F'"),
            ({"place": {"city": "Graz"}, "town": 1}, "town: Extra inputs are not permitted"),
        ],
    )
    async def test_bad_arguments_are_told_to_the_model(self, arguments, why):
        happened = []
        stop = events.subscribe(happened.append)
        result = await run(weather, **arguments)
        stop()
        assert result.error == f"invalid arguments: {why}"
        assert Message.tool(result).content == f"Error: invalid arguments: {why}"
        assert happened == []

    async def test_sync_functions_run_in_a_thread_and_see_the_context(self):
        def who():
            with pytest.raises(RuntimeError):
                asyncio.get_running_loop()
            return SPEAKER.get()

        SPEAKER.set("Ada")
        assert (await run(who)).content == "Ada"

    async def test_sync_function_that_returns_an_awaitable(self):
        def later():
            return asyncio.sleep(0, "done")

        assert (await run(later)).content == "done"

    @pytest.mark.parametrize(
        ("value", "text"),
        [
            ("plain «text»", "plain «text»"),
            ("lone \ud83d half", "lone ? half"),
            (None, "null"),
            ({"a": [1, 2.5, True], 3: date(2026, 1, 2)}, '{"a":[1,2.5,true],"3":"2026-01-02"}'),
            (Place(city="Wien"), '{"city":"Wien","country":"AT"}'),
            ([Point(1, 2)], '[{"x":1,"y":2}]'),
            ([Place(city="Ö")], '[{"city":"Ö","country":"AT"}]'),
            (2**80, str(2**80)),
            (b"raw", "b'raw'"),
        ],
    )
    async def test_results_become_text(self, value, text):
        def give():
            return value

        result = await run(give)
        assert (result.content, result.error) == (text, None)

    @pytest.mark.parametrize("error", [ValueError("too hot"), KeyError()])
    @pytest.mark.parametrize("is_async", [False, True])
    async def test_an_exception_becomes_an_error_and_an_event(self, error, is_async):
        def fail():
            raise error

        async def fail_later():
            raise error

        happened = []
        stop = events.subscribe(happened.append)
        result = await run(fail_later if is_async else fail)
        stop()
        text = f": {error.args[0]}" if error.args else ""
        assert result.error == f"{type(error).__name__}{text}"
        assert [event.name for event in happened] == ["agent.tool_failed"]
        assert happened[0].error is error
        assert happened[0].attributes["call_id"] == "c1"

    async def test_an_iterator_that_runs_dry_in_a_thread_does_not_hang(self):
        def dry():
            next(iter(()))

        assert "StopIteration" in (await run(dry)).error

    async def test_an_error_that_cannot_be_read_is_named(self):
        def fail():
            raise MuteError

        def picky(a: Annotated[int, AfterValidator(refuse)]):
            return a

        assert (await run(fail)).error == "MuteError"
        assert (await run(picky, a=1)).error == "MuteError"

    async def test_faults_are_told_in_text_that_can_be_stored(self):
        result = await run(weather, **{"\ud83d": 1})
        assert result.error.startswith("invalid arguments: ")
        result.error.encode()

    async def test_a_cancellation_of_its_own_is_a_failure(self):
        async def quit_():
            raise asyncio.CancelledError("no more")

        assert (await run(quit_)).error == "CancelledError: no more"

    async def test_cancelling_is_no_failure(self):
        started = asyncio.Event()

        async def wait():
            started.set()
            await asyncio.Event().wait()

        running = asyncio.create_task(run(wait))
        await started.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    async def test_a_tool_made_by_hand_takes_the_arguments_as_they_are(self):
        made = Tool(ToolSpec("echo", "Echo.", {"type": "object"}), lambda **given: given)
        result = await made.run(ToolCall(name="echo", arguments={"x": [1], "y z": None}))
        assert result.content == '{"x":[1],"y z":null}'

    @pytest.mark.slow
    @settings(deadline=None, max_examples=50)
    @given(
        value=st.recursive(
            st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
            lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
            max_leaves=10,
        )
    )
    def test_any_json_goes_through_unchanged(self, value):
        async def echo(value):
            return [value]

        result = asyncio.run(run(echo, value=value))
        assert orjson.loads(result.content) == [value]
