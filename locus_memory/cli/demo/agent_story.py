"""The script of the demo's agent: its users, threads, messages and memories."""

from __future__ import annotations

from typing import Final

from locus_memory.messages import Message, ToolCall

__all__ = [
    "ALLERGY",
    "DINNER",
    "ERRAND",
    "FINISHED",
    "INTERRUPTED",
    "INTRODUCTION",
    "LEARNING",
    "MOVE",
    "NAME",
    "NEW_HOME",
    "OLD_HOME",
    "QUESTIONS",
    "RESUMING",
    "STRANGER",
    "TOOL_RUNS",
    "TRIP",
    "UNDER_WAY",
    "USER",
    "VISIT",
]

USER: Final = "noor"
STRANGER: Final = "stranger"

DINNER: Final = "noor-dinner"
TRIP: Final = "noor-trip"
VISIT: Final = "stranger-visit"
"""The threads: two belong to the user, one to another user."""

INTRODUCTION: Final = "Hello, my name is Noor and I live in Ghent."
ERRAND: Final = "I'm allergic to walnuts. Book us a table on Friday, and tell Ida."
MOVE: Final = "By the way, I live in Lisbon now."
QUESTIONS: Final = ("Where do I live?", "What am I allergic to?")

NAME: Final = "The user's name is Noor."
OLD_HOME: Final = "The user lives in Ghent."
NEW_HOME: Final = "The user lives in Lisbon."
ALLERGY: Final = "The user is allergic to walnuts."
"""The expected memories."""

FINISHED: Final = "book_table"
INTERRUPTED: Final = "send_message"
"""The tools: the first has its result when the process is killed, the other has none."""

UNDER_WAY: Final = "under way"
"""The line of a process in which the second tool runs."""

TOOL_RUNS: Final = "tool-runs"
"""The namespace of the notes about tool runs."""

LEARNING: Final = (
    "Nice to meet you, Noor.",
    Message.assistant(
        tool_calls=[
            ToolCall(name=FINISHED, arguments={"people": 2, "day": "Friday"}),
            ToolCall(name=INTERRUPTED, arguments={"to": "Ida", "text": "Friday!"}),
        ]
    ),
)
RESUMING: Final = ("Your table is booked, and Ida knows.", "Lisbon it is.")
"""The replies of the scripted model; after them, it follows its own rules."""
