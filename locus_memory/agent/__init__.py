"""The reference agent: a small loop that wires a model, tools, checkpoints and memory.

It proves the wiring, and programs without a framework can use it; the managers and checkpointers
work in other loops as well. A run saves its thread after every step. By default, no failure of a
memory manager ends it.

Read `loop.py` first, with its `options.py`, then `session.py` for one run on one thread;
`managers.py` guards the memory and conversation managers, `hooks.py` calls all further hooks, and
`events.py` holds the values that a run returns. `toolkit/` has tools with which a model works on
memories.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from locus_memory._internal.lazy import lazy_names

if TYPE_CHECKING:
    from locus_memory.agent.events import (
        AgentEvent,
        AgentResult,
        Done,
        MessageAdded,
        Saved,
        TextDelta,
        ToolFinished,
        ToolStarted,
    )
    from locus_memory.agent.hooks import Invocation
    from locus_memory.agent.loop import Agent, Usage
    from locus_memory.agent.options import AgentOptions
    from locus_memory.agent.resources import ResourceSettings
    from locus_memory.agent.toolkit.documents_tool import documents_tool
    from locus_memory.agent.toolkit.memory_tool import memory_tool
    from locus_memory.agent.toolkit.resource_tools import resource_tools
    from locus_memory.agent.toolkit.search_tool import memory_tools
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "Agent": "loop",
            "AgentEvent": "events",
            "AgentOptions": "options",
            "AgentResult": "events",
            "Done": "events",
            "Invocation": "hooks",
            "MessageAdded": "events",
            "ResourceSettings": "resources",
            "Saved": "events",
            "TextDelta": "events",
            "ToolFinished": "events",
            "ToolStarted": "events",
            "Usage": "loop",
            "documents_tool": "toolkit.documents_tool",
            "memory_tool": "toolkit.memory_tool",
            "memory_tools": "toolkit.search_tool",
            "resource_tools": "toolkit.resource_tools",
        },
    )

__all__ = [
    "Agent",
    "AgentEvent",
    "AgentOptions",
    "AgentResult",
    "Done",
    "Invocation",
    "MessageAdded",
    "ResourceSettings",
    "Saved",
    "TextDelta",
    "ToolFinished",
    "ToolStarted",
    "Usage",
    "documents_tool",
    "memory_tool",
    "memory_tools",
    "resource_tools",
]
