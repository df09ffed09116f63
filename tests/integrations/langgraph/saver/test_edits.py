"""What was changed in place between two puts is stored as it is."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.base.id import uuid6

from locus_memory._internal.sameness import same
from locus_memory.integrations.langgraph import LocusSaver

CONFIG: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}


@dataclass
class Note:
    text: str


def elements() -> list[Any]:
    call = {"name": "f", "args": {"n": 1, "words": ["a"]}, "id": "1", "type": "tool_call"}
    spent = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
    return [
        HumanMessage("secret", id="0"),
        AIMessage("", tool_calls=[call], id="1", usage_metadata=spent),
        ToolMessage("found", tool_call_id="1", artifact={"rows": [1]}, id="2"),
        HumanMessage([{"type": "text", "text": "a part"}], id="3"),
        {"role": "user", "n": [1]},
        ["plain", 0.0],
        Note("a note"),
        "text",
    ]


EDITS: dict[str, Callable[[list[Any]], Any]] = {
    "content": lambda found: setattr(found[0], "content", "REDACTED"),
    "additional": lambda found: found[0].additional_kwargs.update(seen=True),
    "extra": lambda found: setattr(found[0], "of_ones_own", 1),
    "argument's type": lambda found: found[1].tool_calls[0]["args"].update(n=True),
    "argument's part": lambda found: found[1].tool_calls[0]["args"]["words"].append("b"),
    "usage": lambda found: found[1].usage_metadata.update(input_tokens=2),
    "artifact": lambda found: found[2].artifact["rows"].append(2),
    "part": lambda found: found[3].content[0].update(text="REDACTED"),
    "dict": lambda found: found[4].update(n=[1.0]),
    "list": lambda found: found[5].__setitem__(1, -0.0),
    "object": lambda found: setattr(found[6], "text", "REDACTED"),
    "order": lambda found: found.insert(0, found.pop(3)),
    "twice": lambda found: found.append(found[0]),
}


async def put(saver: LocusSaver, config: Any, values: list[Any], version: int) -> Any:
    checkpoint = empty_checkpoint() | {"id": str(uuid6(clock_seq=version))}
    checkpoint["channel_values"] = {"log": values}
    checkpoint["channel_versions"] = {"log": version}
    return await saver.aput(
        config, checkpoint, {"source": "loop", "step": version}, {"log": version}
    )


async def stored(saver: LocusSaver, config: Any) -> Any:
    found = await saver.aget_tuple(config)
    assert found is not None
    return found.checkpoint["channel_values"]["log"]


def content(values: list[Any]) -> list[Any]:
    """Return what is in the elements, as far as it comes back."""
    return [
        value.model_dump() if hasattr(value, "model_dump") else getattr(value, "text", value)
        for value in values
    ]


@pytest.mark.slow
@pytest.mark.parametrize("loaded", [False, True], ids=["put", "loaded"])
@pytest.mark.parametrize("name", EDITS)
async def test_an_old_element_changed_in_place_is_stored_as_it_is(name, loaded):
    async with LocusSaver("memory").with_allowlist([(__name__, "Note")]) as saver:
        values = elements() + [HumanMessage(str(n), id=str(n)) for n in range(10, 60)]
        first = await put(saver, CONFIG, values, 1)
        if loaded:
            values = await stored(saver, CONFIG)
        before = content(deepcopy(values))
        EDITS[name](values)
        second = await put(saver, first, values, 2)
        assert same(content(await stored(saver, second)), content(values))
        assert same(content(await stored(saver, CONFIG)), content(values))
        assert same(content(await stored(saver, first)), before)
