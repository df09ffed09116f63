"""The public files of conversations and questions, turned into our own form; see `dataset.py`.

Nothing is checked here but the shape: what comes out is checked as a file of ours is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import orjson

from locus_memory._internal.quoting import quote
from locus_memory.errors import InvalidArgumentError

__all__ = ["in_own_form", "read_document"]

_SESSION: Final = re.compile(r"session_(\d+)")
# What BEAM's generator left at the end of a message: its place in the plan.
_PLAN_MARK: Final = re.compile(r"\s*->->[\s\d.,]*$")
_BEAM_QUESTIONS: Final = "probing_questions/probing_questions.json"
_BEAM_CHATS: Final = ("chat_trunecated.json", "chat.json")
_BEAM_ANSWERS: Final = (
    "answer", "ideal_answer", "ideal_response", "ideal_summary", "expected_compliance",
)  # fmt: skip

_Plain = dict[str, Any]


def read_document(path: Path) -> Any:
    """Return the JSON of a file, or that of all chats of a folder.

    Raises:
        OSError: A file cannot be read.
        InvalidArgumentError: It is not JSON, or nothing of it is a chat.
    """
    if not path.is_dir():
        document = _json(path.read_bytes(), path)
        return _with_questions(document, path) if _is_memory_bank(document) else document
    found = [_beam(each.parents[1], path) for each in path.rglob(_BEAM_QUESTIONS)]
    found.sort(key=lambda entry: (len(entry["id"]), entry["id"]))
    for each in () if found else sorted(path.glob("*.json")):
        found += in_own_form(read_document(each), str(each))
    if not found:
        raise InvalidArgumentError(f"{path}: a folder without chats")
    return found


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
            yield shape(entry, Path(source).stem)
        except _MISSHAPEN as error:
            told = "it has no field of a known file; BEAM is read as a folder"
            if not isinstance(error, StopIteration):
                told = f"{type(error).__name__}: {quote(str(error))}"
            raise InvalidArgumentError(
                f"{source}: not a conversation: number {number}: {told}"
            ) from None


def _locomo(entry: _Plain, _source: str) -> _Plain:
    sessions = [*_numbered_sessions(entry["conversation"])]
    return {"id": entry["sample_id"], "sessions": sessions, "questions": entry["qa"]}


def _realtalk(entry: _Plain, source: str) -> _Plain:
    return {"id": source, "sessions": [*_numbered_sessions(entry)], "questions": entry["qa"]}


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


def _long_mem_eval(entry: _Plain, _source: str) -> _Plain:
    dates, haystack = entry["haystack_dates"], entry["haystack_sessions"]
    numbered = [[(f"D{n}:{k}", turn) for k, turn in enumerate(turns, 1)]
                for n, turns in enumerate(haystack, 1)]  # fmt: skip
    return {
        "id": entry["question_id"],
        "sessions": [
            {
                "date_time": date,
                "turns": [
                    {"id": name, "speaker": turn["role"], "text": turn["content"]}
                    for name, turn in turns
                ],
            }
            for date, turns in zip(dates, numbered, strict=True)
        ],
        "questions": [
            {
                "id": entry["question_id"],
                "question": entry["question"],
                "category": entry["question_type"],
                "answer": entry["answer"],
                "abstain": str(entry["question_id"]).endswith("_abs"),
                "asked_at": entry["question_date"],
                "evidence": [
                    name for turns in numbered for name, turn in turns if turn.get("has_answer")
                ],
            }
        ],
    }


def _memory_bank(entry: _Plain, _source: str) -> _Plain:
    sessions = []
    for number, (day, talk) in enumerate(entry["history"].items(), 1):
        said = [
            (speaker, each[field])
            for each in talk
            for speaker, field in ((entry["name"], "query"), ("Assistant", "response"))
        ]
        turns = [
            {"id": f"D{number}:{place}", "speaker": speaker, "text": text}
            for place, (speaker, text) in enumerate(said, 1)
        ]
        sessions.append({"date_time": day, "turns": turns})
    questions = [{"question": text, "category": "probing"} for text in entry.get("asked", ())]
    return {"id": entry["name"], "sessions": sessions, "questions": questions}


def _own(entry: _Plain, _source: str) -> _Plain:
    return entry


# The field that each file alone has, and what makes ours of its entries.
_SHAPES: Final[dict[str, Callable[[_Plain, str], _Plain]]] = {
    "conversation": _locomo,
    "haystack_sessions": _long_mem_eval,
    "session_1": _realtalk,
    "history": _memory_bank,
    "sessions": _own,
}
_MISSHAPEN: Final = (
    AttributeError, IndexError, KeyError, RecursionError, StopIteration, TypeError, ValueError,
)  # fmt: skip


def _is_memory_bank(document: Any) -> bool:
    people = document.values() if isinstance(document, dict) else ()
    return any(isinstance(each, dict) and "history" in each for each in people)


def _with_questions(people: dict[str, Any], path: Path) -> dict[str, Any]:
    """Return MemoryBank's people with their questions, which are in a file beside."""
    beside = path.with_name(f"{path.stem.replace('memory_bank', 'probing_questions')}.jsonl")
    if not beside.is_file():
        raise InvalidArgumentError(f"{path}: the questions of MemoryBank are in {beside.name}")
    for line in beside.read_bytes().splitlines():
        asked = _json(line, beside) if line.strip() else {}
        for name, texts in asked.items() if isinstance(asked, dict) else ():
            if isinstance(people.get(name), dict):
                people[name]["asked"] = texts
    return people


def _beam(folder: Path, root: Path) -> _Plain:
    """Return a chat of BEAM; the shortened one, where there is one, as its own harness does."""
    name = "/".join(folder.relative_to(root).parts) or folder.resolve().name
    chat = next((folder / each for each in _BEAM_CHATS if (folder / each).is_file()), None)
    if chat is None:
        raise InvalidArgumentError(f"{folder}: questions without a chat.json")
    asked = folder / _BEAM_QUESTIONS
    try:
        return {
            "id": name,
            "sessions": [*_beam_sessions(_json(chat.read_bytes(), chat))],
            "questions": [*_beam_questions(_json(asked.read_bytes(), asked))],
        }
    except _MISSHAPEN as error:
        told = f"{type(error).__name__}: {quote(str(error))}"
        raise InvalidArgumentError(f"{folder}: not a chat of BEAM: {told}") from None


def _beam_sessions(chat: Any) -> Iterator[_Plain]:
    """Yield a session for each batch of messages; a message without a date has the last one."""
    day = None
    for messages in _beam_batches(chat):
        turns = []
        for each in messages:
            day = each.get("time_anchor") or day
            text = _PLAN_MARK.sub("", each["content"])
            turns.append(
                {"id": each["id"], "speaker": each["role"], "text": text, "date_time": day}
            )
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


def _beam_questions(asked: _Plain) -> Iterator[_Plain]:
    for category, entries in asked.items():
        for number, each in enumerate(entries, 1):
            yield {
                "id": f"{category}-{number}",
                "question": each["question"],
                "category": category,
                "answer": next((each[name] for name in _BEAM_ANSWERS if name in each), None),
                "abstain": category == "abstention",
                "evidence": [*_leaves(each.get("source_chat_ids"))],
            }


def _leaves(value: Any) -> Iterator[Any]:
    """Yield the ids of a list, or of an object of lists."""
    if isinstance(value, (dict, list)):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _leaves(each)
    elif value is not None:
        yield value


def _json(content: bytes, path: Path) -> Any:
    try:
        return orjson.loads(content)
    except orjson.JSONDecodeError as error:
        raise InvalidArgumentError(f"{path}: not JSON: {error}") from None
