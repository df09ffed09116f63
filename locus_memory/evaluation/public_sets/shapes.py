"""The conversations and questions of public sets, turned into our own form; pure.

Nothing is checked here but the shape: what comes out is checked as a file of ours is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, TypeAlias

from locus_memory._internal.quoting import shorten
from locus_memory.errors import InvalidArgumentError

__all__ = ["in_own_form"]

_SESSION: Final = re.compile(r"session_(\d+)")
# What BEAM's generator left at the end of a message: its place in the plan.
_PLAN_MARK: Final = re.compile(r"->->[\s\d.,]*$")
# The numbers of a list, or of an object of lists, but not those of its names.
_NUMBER: Final = re.compile(r"(?<![\w'\"])\d+(?![\w'\"])")
_BEAM_ANSWERS: Final = (
    "answer", "ideal_answer", "ideal_response", "ideal_summary", "expected_compliance",
)  # fmt: skip

_Plain: TypeAlias = dict[str, Any]


def in_own_form(document: Any, source: str) -> Iterator[_Plain]:
    """Yield the conversations of a document in our own form.

    Raises:
        InvalidArgumentError: It is not of a known shape.
    """
    if isinstance(document, dict):
        document = [document] if document.keys() & _SHAPES.keys() else [*document.values()]
    if not isinstance(document, list) or not document:
        raise InvalidArgumentError(f"{source}: a data set is a list of conversations")
    for number, entry in enumerate(document, 1):
        try:
            shape = next(make for field, make in _SHAPES.items() if field in entry)
            yield shape({"source": Path(source).stem, **entry})
        except _MISSHAPEN as error:
            # BEAM's chat without its questions is also of no known shape.
            is_unknown = isinstance(error, StopIteration)
            told = "no known field" if is_unknown else f"{type(error).__name__}: {error}"
            raise InvalidArgumentError(
                f"{source}: not a conversation: number {number}: {shorten(told)}"
            ) from None


def _locomo(entry: _Plain) -> _Plain:
    sessions = [*_numbered_sessions(entry["conversation"])]
    return {"id": entry["sample_id"], "sessions": sessions, "questions": entry["qa"]}


def _realtalk(entry: _Plain) -> _Plain:
    sessions = [*_numbered_sessions(entry)]
    return {"id": entry["source"], "sessions": sessions, "questions": entry["qa"]}


def _numbered_sessions(holder: _Plain) -> Iterator[_Plain]:
    numbers = sorted(int(match[1]) for match in map(_SESSION.fullmatch, holder) if match)
    for number in numbers:
        turns = [
            {
                "id": turn["dia_id"],
                "speaker": turn["speaker"],
                "text": turn.get("text", turn.get("clean_text")),
                "image_caption": turn.get("blip_caption"),
                "date_time": turn.get("date_time"),
            }
            for turn in holder[f"session_{number}"]
        ]
        yield {"date_time": holder.get(f"session_{number}_date_time"), "turns": turns}


def _long_mem_eval(entry: _Plain) -> _Plain:
    sessions = [
        {
            "date_time": date,
            "turns": [
                {
                    "id": f"D{number}:{place}",
                    "speaker": turn["role"],
                    "text": turn["content"],
                    "is_evidence": turn.get("has_answer"),
                }
                for place, turn in enumerate(turns, 1)
            ],
        }
        for number, (date, turns) in enumerate(
            zip(entry["haystack_dates"], entry["haystack_sessions"], strict=True), 1
        )
    ]
    question = {
        "id": entry["question_id"],
        "question": entry["question"],
        "category": entry["question_type"],
        "answer": entry["answer"],
        "abstain": entry["question_id"].endswith("_abs"),
        "asked_at": entry["question_date"],
        "evidence": [
            turn["id"] for each in sessions for turn in each["turns"] if turn["is_evidence"]
        ],
    }
    return {"id": entry["question_id"], "sessions": sessions, "questions": [question]}


def _memory_bank(entry: _Plain) -> _Plain:
    speakers = {"query": entry["name"], "response": "Assistant"}
    sessions = [
        {
            "date_time": day,
            "turns": [
                {"id": f"D{number}:{place}{field[0]}", "speaker": speaker, "text": said[field]}
                for place, said in enumerate(talk, 1)
                for field, speaker in speakers.items()
            ],
        }
        for number, (day, talk) in enumerate(entry["history"].items(), 1)
    ]
    questions = [{"question": text, "category": "probing"} for text in entry.get("asked", ())]
    return {"id": entry["name"], "sessions": sessions, "questions": questions}


def _beam(entry: _Plain) -> _Plain:
    questions = [
        {
            "id": f"{category}-{number}",
            "question": each["question"],
            "category": category,
            "answer": next((each[name] for name in _BEAM_ANSWERS if name in each), None),
            "abstain": category == "abstention",
            "evidence": _NUMBER.findall(str(each.get("source_chat_ids"))),
        }
        for category, entries in entry["probing_questions"].items()
        for number, each in enumerate(entries, 1)
    ]
    sessions = [*_beam_sessions(entry["chat"])]
    return {"id": entry["id"], "sessions": sessions, "questions": questions}


def _beam_sessions(chat: Any) -> Iterator[_Plain]:
    """Yield a session for each batch of messages; a message without a date has the last one."""
    day = None
    for messages in _beam_batches(chat):
        turns = []
        for each in messages:
            day = each.get("time_anchor") or day
            said = {"text": _PLAN_MARK.sub("", each["content"]).rstrip(), "date_time": day}
            turns.append({"id": each["id"], "speaker": each["role"], **said})
        yield {"turns": turns}


def _beam_batches(part: Any) -> Iterator[list[_Plain]]:
    """Yield the batches of a chat, whether they are in turns, in plans or bare."""
    if isinstance(part, dict) and "turns" in part:
        yield [message for turn in part["turns"] for message in turn]
    elif isinstance(part, list) and part and "role" in part[0]:
        yield part
    else:
        for each in part.values() if isinstance(part, dict) else part or ():
            yield from _beam_batches(each)


# The field that each file alone has, and what makes ours of its entries.
_SHAPES: Final[Mapping[str, Callable[[_Plain], _Plain]]] = {
    "conversation": _locomo,
    "haystack_sessions": _long_mem_eval,
    "session_1": _realtalk,
    "history": _memory_bank,
    "probing_questions": _beam,
    "sessions": dict,
}
_MISSHAPEN: Final = (
    AttributeError, KeyError, RecursionError, StopIteration, TypeError, ValueError,
)  # fmt: skip
