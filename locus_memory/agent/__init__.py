"""The reference agent: a small loop that wires a model, tools, checkpoints and memory.

It proves the wiring and serves where no framework is wanted; the managers and checkpointers work
in other loops as well. A run saves its thread after every step, and no failure of a memory ends
it.

Read `loop.py` first, then `session.py` for one run on one thread; `managers.py` guards the memory
and conversation managers, and `events.py` holds the values that a run returns.
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
    from locus_memory.agent.loop import Agent, Usage
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "Agent": "loop",
            "AgentEvent": "events",
            "AgentResult": "events",
            "Done": "events",
            "MessageAdded": "events",
            "Saved": "events",
            "TextDelta": "events",
            "ToolFinished": "events",
            "ToolStarted": "events",
            "Usage": "loop",
        },
    )

__all__ = [
    "Agent",
    "AgentEvent",
    "AgentResult",
    "Done",
    "MessageAdded",
    "Saved",
    "TextDelta",
    "ToolFinished",
    "ToolStarted",
    "Usage",
]
